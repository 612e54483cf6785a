// SPDX-License-Identifier: MIT OR Apache-2.0
// The version. Up to 7.1 it is in libnvds_meta.so, and from 8.0 on in libnvds_utils.so. NVIDIA does
// not document which library has it, so the element must try both.

#include <stdio.h>
#include <stdlib.h>

#include "headers.h"

// The variable STANDIN_VERSION replaces the version that is reported.
void nvds_version(unsigned int *major, unsigned int *minor)
{
    *major = DEEPSTREAM / 10;
    *minor = DEEPSTREAM % 10;
    const char *other = getenv("STANDIN_VERSION");
    if (other && sscanf(other, "%u.%u", major, minor) != 2)
        abort();
}
