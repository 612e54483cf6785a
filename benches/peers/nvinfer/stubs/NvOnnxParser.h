// SPDX-License-Identifier: MIT OR Apache-2.0
// nvinfer's headers include this file, but do not need any name in it.
#pragma once
