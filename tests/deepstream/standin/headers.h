// SPDX-License-Identifier: MIT OR Apache-2.0
// The structures of the version DEEPSTREAM, or, if NVIDIA_HEADERS is defined, the structures of
// NVIDIA's headers.
#pragma once

#include <stddef.h>

#ifdef NVIDIA_HEADERS
#include <gst/gst.h>
// The headers below depend on this one.
#include "gstnvdsinfer.h"
#include "gstnvdsmeta.h"
#include "nvbufsurface.h"
#include "nvds_roi_meta.h"
#include "nvds_version.h"
#define DEEPSTREAM (10 * NVDS_VERSION_MAJOR + NVDS_VERSION_MINOR)
#else
#include "metadata.h"
#endif
