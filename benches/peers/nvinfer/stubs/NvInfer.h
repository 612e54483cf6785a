// SPDX-License-Identifier: MIT OR Apache-2.0
// Declares names of TensorRT that nvinfer's headers mention. The measured functions do not use
// them.
#pragma once

namespace nvinfer1 {
enum class DataType : int;
enum class DeviceType : int;
struct Dims {};
// This type is complete, because a destructor in nvinfer's headers deletes it.
class IExecutionContext {};
class IBuilder;
class IBuilderConfig;
class ICudaEngine;
class ILogger;
class INetworkDefinition;
class IPluginFactory;
} // namespace nvinfer1
