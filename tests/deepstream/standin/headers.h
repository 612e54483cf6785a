// SPDX-License-Identifier: MIT OR Apache-2.0
// The structures of the version DEEPSTREAM, or, where NVIDIA_HEADERS is defined, those of NVIDIA's published
// headers, which are 9.1's; with asserts of their offsets.
#pragma once

#ifdef NVIDIA_HEADERS
#define DEEPSTREAM 91
#include <gst/gst.h>
// Those below need it.
#include "gstnvdsinfer.h"
#include "gstnvdsmeta.h"
#include "nvbufsurface.h"
#include "nvds_roi_meta.h"
#include "nvds_version.h"
_Static_assert(NVDS_VERSION_MAJOR == 9 && NVDS_VERSION_MINOR == 1, "NVIDIA's headers are 9.1's");
#else
#include "metadata.h"
#endif

#include "offsets.h"
