// SPDX-License-Identifier: MIT OR Apache-2.0
// Declares names of the CUDA runtime that nvinfer's headers mention. The measured functions do not
// use them.
#pragma once

using cudaStream_t = struct CudaStreamStub *;
using cudaEvent_t = struct CudaEventStub *;
constexpr unsigned cudaStreamDefault = 0;
constexpr unsigned cudaEventDefault = 0;
