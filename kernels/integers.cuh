// SPDX-License-Identifier: MIT OR Apache-2.0
// Integers of fixed size, for each compiler that builds the kernels.
#pragma once

#if defined(__CUDACC_RTC__) || defined(NMSFILTER_FREESTANDING)
typedef signed char int8_t;
typedef unsigned char uint8_t;
typedef unsigned short uint16_t;
typedef int int32_t;
typedef unsigned int uint32_t;
typedef long long int64_t;
typedef unsigned long long uint64_t;
#else
#include <stdint.h>
#endif
