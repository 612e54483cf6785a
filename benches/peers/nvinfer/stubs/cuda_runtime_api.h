// SPDX-License-Identifier: MIT OR Apache-2.0
// Declarations of the CUDA runtime's names that the headers of nvinfer mention. The measured functions use
// none of them.
#pragma once

using cudaStream_t = struct CudaStreamStub *;
using cudaEvent_t = struct CudaEventStub *;
constexpr unsigned cudaStreamDefault = 0;
constexpr unsigned cudaEventDefault = 0;
