// SPDX-License-Identifier: MIT OR Apache-2.0
// The structures of the version DEEPSTREAM, or, where NVIDIA_HEADERS is defined, those of NVIDIA's headers of some
// version.
#pragma once

#include <stddef.h>

#ifdef NVIDIA_HEADERS
#include <gst/gst.h>
// Those below need it.
#include "gstnvdsinfer.h"
#include "gstnvdsmeta.h"
#include "nvbufsurface.h"
#include "nvds_roi_meta.h"
#include "nvds_version.h"
#define DEEPSTREAM (10 * NVDS_VERSION_MAJOR + NVDS_VERSION_MINOR)
#else
#include "metadata.h"
#endif
