// SPDX-License-Identifier: MIT OR Apache-2.0
// TensorRT's second header; its names are in NvInfer.h here.
#pragma once
#include "NvInfer.h"
