// SPDX-License-Identifier: MIT OR Apache-2.0
// The version. libnvds_meta.so until 7.1, libnvds_utils.so from 8.0 on, so that both are tried: in which of
// its libraries NVIDIA has it is not documented.

#include <stdio.h>
#include <stdlib.h>

#include "headers.h"

// STANDIN_VERSION is what is reported instead.
void nvds_version(unsigned int *major, unsigned int *minor)
{
    *major = DEEPSTREAM / 10;
    *minor = DEEPSTREAM % 10;
    const char *other = getenv("STANDIN_VERSION");
    if (other && sscanf(other, "%u.%u", major, minor) != 2)
        abort();
}
