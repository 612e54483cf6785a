// SPDX-License-Identifier: MIT OR Apache-2.0
// Declarations of TensorRT's names that the headers of nvinfer mention. The measured functions use none of
// them.
#pragma once

namespace nvinfer1 {
enum class DataType : int;
enum class DeviceType : int;
struct Dims {};
// Complete, because a destructor in nvinfer's headers deletes it.
class IExecutionContext {};
class IBuilder;
class IBuilderConfig;
class ICudaEngine;
class ILogger;
class INetworkDefinition;
class IPluginFactory;
} // namespace nvinfer1
