// SPDX-License-Identifier: MIT OR Apache-2.0
// Replaces the header of DeepStream's 3D components. No buffer has a data map, so the element
// nvmsgconv refuses streams of 3D data.
#pragma once
#include <gst/gst.h>

#include "ds3d/common/hpp/datamap.hpp"

inline ds3d::Code NvDs3D_Find1stDataMap(GstBuffer *, const ds3d::abiRefDataMap *&) { return ds3d::Code::Missing; }
