// SPDX-License-Identifier: MIT OR Apache-2.0
// The part of TensorRT's interface that DeepStream's inference library needs to compile. The only
// engine is in recorded.cpp.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>

#include <cuda_runtime_api.h>

namespace nvinfer1 {

struct Dims {
    static constexpr int32_t MAX_DIMS = 8;
    int32_t nbDims;
    int64_t d[MAX_DIMS];
};

enum class DataType : int32_t { kFLOAT, kHALF, kINT8, kINT32, kBOOL, kUINT8, kINT64 };
enum class TensorFormat : int32_t { kLINEAR, kCHW2, kHWC8, kCHW4, kCHW16, kCHW32 };
using TensorFormats = uint32_t;
enum class DeviceType : int32_t { kGPU, kDLA };
enum class TensorIOMode : int32_t { kNONE, kINPUT, kOUTPUT };
enum class OptProfileSelector : int32_t { kMIN, kOPT, kMAX };

template <class T>
constexpr int32_t EnumMax();
template <>
constexpr int32_t EnumMax<OptProfileSelector>() {
    return 3;
}

class ILogger {
public:
    virtual ~ILogger() = default;
};

class IExecutionContext {
public:
    virtual ~IExecutionContext() = default;
    virtual int32_t getOptimizationProfile() const = 0;
    virtual bool setOptimizationProfileAsync(int32_t profile, cudaStream_t stream) = 0;
    virtual bool setInputShape(const char *name, const Dims &dims) = 0;
    virtual bool allInputDimensionsSpecified() const = 0;
    virtual Dims getTensorShape(const char *name) const = 0;
    virtual bool setTensorAddress(const char *name, void *address) = 0;
    virtual bool enqueueV3(cudaStream_t stream) = 0;
};

class ICudaEngine {
public:
    virtual ~ICudaEngine() = default;
    virtual int32_t getNbIOTensors() const = 0;
    virtual const char *getIOTensorName(int32_t index) const = 0;
    virtual TensorIOMode getTensorIOMode(const char *name) const = 0;
    virtual DataType getTensorDataType(const char *name) const = 0;
    virtual Dims getTensorShape(const char *name) const = 0;
    virtual Dims getProfileShape(const char *name, int32_t profile, OptProfileSelector selector) const = 0;
    virtual int32_t getNbOptimizationProfiles() const = 0;
    virtual IExecutionContext *createExecutionContext() = 0;
};

class ITensor {
public:
    virtual ~ITensor() = default;
    virtual const char *getName() const = 0;
};

class INetworkDefinition {
public:
    virtual ~INetworkDefinition() = default;
    virtual int32_t getNbOutputs() const = 0;
    virtual ITensor *getOutput(int32_t index) const = 0;
};

// Only pointers to these classes are used.
class IRuntime {
public:
    virtual ~IRuntime() = default;
};
class IBuilder {
public:
    virtual ~IBuilder() = default;
};
class IBuilderConfig {
public:
    virtual ~IBuilderConfig() = default;
};
class IPluginFactory;

class IInt8Calibrator {
public:
    virtual ~IInt8Calibrator() = default;
    virtual int32_t getBatchSize() const noexcept = 0;
    virtual bool getBatch(void *bindings[], const char *names[], int32_t count) noexcept = 0;
    virtual const void *readCalibrationCache(std::size_t &length) noexcept = 0;
    virtual void writeCalibrationCache(const void *cache, std::size_t length) noexcept = 0;
};
class IInt8EntropyCalibrator2 : public IInt8Calibrator {};

}  // namespace nvinfer1

namespace nvonnxparser {
class IParser {
public:
    virtual ~IParser() = default;
};
}  // namespace nvonnxparser

bool initLibNvInferPlugins(void *logger, const char *names);

// DeepStream's own TensorRT headers declare this variable.
extern std::unique_ptr<nvinfer1::ILogger> gTrtLogger;
