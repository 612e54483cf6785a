// SPDX-License-Identifier: MIT OR Apache-2.0
// The CUDA runtime's names that nvmsgconv mentions, for points of a lidar in device memory. Not called: there
// are no such points in ds3d/common/hpp/datamap.hpp.
#pragma once
#include <cstddef>
#include <cstdlib>

constexpr int cudaMemcpyDeviceToHost = 2;

inline void cudaMemcpy(void *, const void *, size_t, int) { std::abort(); }
