// SPDX-License-Identifier: MIT OR Apache-2.0
// TensorRT's second header. Its names are declared in the NvInfer.h beside this file.
#pragma once
#include "NvInfer.h"
