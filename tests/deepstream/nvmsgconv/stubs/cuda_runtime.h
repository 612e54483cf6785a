// SPDX-License-Identifier: MIT OR Apache-2.0
// Names of the CUDA runtime that nvmsgconv uses for lidar points in device memory. They are never
// called, because the data maps in ds3d/common/hpp/datamap.hpp have no such points.
#pragma once
#include <cstddef>
#include <cstdlib>

constexpr int cudaMemcpyDeviceToHost = 2;

inline void cudaMemcpy(void *, const void *, size_t, int) { std::abort(); }
