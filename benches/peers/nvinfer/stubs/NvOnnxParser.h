// SPDX-License-Identifier: MIT OR Apache-2.0
// Included by nvinfer's headers, which use none of its names.
#pragma once
