// SPDX-License-Identifier: MIT OR Apache-2.0
// An engine for DeepStream's inference library that replaces TensorRT's and returns recorded
// outputs.
//
// The key `onnx-file` (or `model-engine-file`) in nvinfer's configuration names a text file:
//
//     input images 3 640 640
//     output output0 f32 84 8400 outputs.bin
//
// The file has one input and one or more outputs (f32 or f16), each with the dimensions for one
// frame. Each output names a file of elements, relative to the text file. The files contain the
// outputs of one or more frames, and all files must have equally many. Frames are numbered across
// batches: frame n gets the recorded outputs n modulo the number of recorded frames. The engine of
// `onnx-file` has the batch size of the configuration. The engine of `model-engine-file` accepts
// batches of up to 64.
//
// The outputs are copied on the stream that TensorRT would use, from memory of the same device. The
// input is ignored, and NVIDIA's kernels that convert pixels to it are replaced by empty functions.

#include <cstdarg>
#include <cstdio>
#include <cstring>
#include <fstream>
#include <map>
#include <sstream>
#include <stdexcept>
#include <string>
#include <vector>

#include "nvdsinfer_model_builder.h"
// This header uses CUDA's types without including their header.
#include "nvdsinfer_conversion.h"
#include "nvdsinfer_dbscan.h"

namespace {

// Needed by the macro dsInferError.
using nvdsinfer::dsInferLogPrint__;
using nvinfer1::DataType;
using nvinfer1::Dims;

void check(cudaError_t error, const char *what) {
    if (error != cudaSuccess) throw std::runtime_error(std::string(what) + ": " + cudaGetErrorString(error));
}

struct Tensor {
    std::string name;
    bool is_input = false;
    DataType type = DataType::kFLOAT;
    // Dimensions without the batch.
    Dims dims{};
    // Bytes per frame.
    size_t bytes = 0;
    // Recorded outputs, in device memory.
    std::shared_ptr<void> recorded;

    Dims with_batch(int64_t batch) const {
        Dims full{dims.nbDims + 1, {batch}};
        std::memcpy(full.d + 1, dims.d, dims.nbDims * sizeof dims.d[0]);
        return full;
    }
};

struct Recording {
    std::vector<Tensor> tensors;
    size_t frames = 0;
    int32_t max_batch = 0;

    const Tensor &named(const char *name) const {
        for (const Tensor &tensor : tensors)
            if (tensor.name == name) return tensor;
        throw std::runtime_error(std::string("there is no tensor ") + name);
    }
};

std::shared_ptr<void> upload(const std::string &content) {
    void *memory = nullptr;
    check(cudaMalloc(&memory, content.size()), "cudaMalloc");
    std::shared_ptr<void> owned(memory, cudaFree);
    check(cudaMemcpy(memory, content.data(), content.size(), cudaMemcpyHostToDevice), "cudaMemcpy");
    return owned;
}

std::shared_ptr<Recording> read(const std::string &path, int32_t max_batch) {
    std::ifstream file(path);
    if (!file) throw std::runtime_error("cannot open " + path);
    auto recording = std::make_shared<Recording>();
    recording->max_batch = max_batch;
    for (std::string line; std::getline(file, line);) {
        std::istringstream words(line);
        Tensor tensor;
        std::string kind, type = "f32", word;
        if (!(words >> kind)) continue;
        tensor.is_input = kind == "input";
        words >> tensor.name;
        if (!tensor.is_input) words >> type;
        if ((kind != "input" && kind != "output") || tensor.name.empty() || (type != "f32" && type != "f16"))
            throw std::runtime_error(path + ": expected 'input NAME DIMS' or 'output NAME f32|f16 DIMS FILE', found: " + line);
        tensor.type = type == "f16" ? DataType::kHALF : DataType::kFLOAT;
        tensor.bytes = type == "f16" ? 2 : 4;
        while (words >> word && word.find_first_not_of("0123456789") == std::string::npos) {
            if (tensor.dims.nbDims == Dims::MAX_DIMS - 1) throw std::runtime_error(path + ": too many dimensions: " + line);
            tensor.dims.d[tensor.dims.nbDims++] = std::stoll(word);
            tensor.bytes *= std::stoull(word);
            word.clear();
        }
        if (!tensor.is_input) {
            const std::string other = path.substr(0, path.rfind('/') + 1) + word;
            std::ifstream elements(other, std::ios::binary);
            std::string content{std::istreambuf_iterator<char>(elements), {}};
            const size_t frames = tensor.bytes ? content.size() / tensor.bytes : 0;
            if (!frames || frames * tensor.bytes != content.size() || (recording->frames && recording->frames != frames))
                throw std::runtime_error(other + ": not the outputs of whole frames, of as many as the other files");
            recording->frames = frames;
            tensor.recorded = upload(content);
        }
        recording->tensors.push_back(tensor);
    }
    if (recording->tensors.empty() || !recording->tensors[0].is_input || !recording->frames)
        throw std::runtime_error(path + ": expected an input, and outputs after it");
    return recording;
}

class Context : public nvinfer1::IExecutionContext {
public:
    explicit Context(std::shared_ptr<Recording> recording) : recording(std::move(recording)) {}

private:
    int32_t getOptimizationProfile() const override { return 0; }
    bool setOptimizationProfileAsync(int32_t profile, cudaStream_t) override { return profile == 0; }
    bool setInputShape(const char *, const Dims &dims) override {
        batch = dims.d[0];
        return batch > 0 && batch <= recording->max_batch;
    }
    bool allInputDimensionsSpecified() const override { return batch > 0; }
    Dims getTensorShape(const char *name) const override { return recording->named(name).with_batch(batch); }
    bool setTensorAddress(const char *name, void *address) override {
        addresses[name] = static_cast<char *>(address);
        return true;
    }
    bool enqueueV3(cudaStream_t stream) override {
        for (const Tensor &tensor : recording->tensors) {
            if (tensor.is_input) continue;
            const char *from = static_cast<const char *>(tensor.recorded.get());
            for (int64_t frame = 0; frame < batch;) {
                // Copies as many frames at once as are consecutive in the recording.
                const size_t first = (next + frame) % recording->frames;
                const size_t count = std::min<size_t>(recording->frames - first, batch - frame);
                if (cudaMemcpyAsync(addresses[tensor.name] + frame * tensor.bytes, from + first * tensor.bytes,
                                    count * tensor.bytes, cudaMemcpyDeviceToDevice, stream) != cudaSuccess)
                    return false;
                frame += count;
            }
        }
        next += batch;
        return true;
    }

    std::shared_ptr<Recording> recording;
    std::map<std::string, char *> addresses;
    int64_t batch = 0;
    // Number of the first frame in the next batch.
    size_t next = 0;
};

class Engine : public nvinfer1::ICudaEngine {
public:
    explicit Engine(std::shared_ptr<Recording> recording) : recording(std::move(recording)) {}

private:
    int32_t getNbIOTensors() const override { return recording->tensors.size(); }
    const char *getIOTensorName(int32_t index) const override { return recording->tensors.at(index).name.c_str(); }
    nvinfer1::TensorIOMode getTensorIOMode(const char *name) const override {
        for (const Tensor &tensor : recording->tensors)
            if (tensor.name == name)
                return tensor.is_input ? nvinfer1::TensorIOMode::kINPUT : nvinfer1::TensorIOMode::kOUTPUT;
        return nvinfer1::TensorIOMode::kNONE;
    }
    DataType getTensorDataType(const char *name) const override { return recording->named(name).type; }
    Dims getTensorShape(const char *name) const override { return recording->named(name).with_batch(-1); }
    Dims getProfileShape(const char *name, int32_t, nvinfer1::OptProfileSelector selector) const override {
        const bool least = selector == nvinfer1::OptProfileSelector::kMIN;
        return recording->named(name).with_batch(least ? 1 : recording->max_batch);
    }
    int32_t getNbOptimizationProfiles() const override { return 1; }
    nvinfer1::IExecutionContext *createExecutionContext() override { return new Context(recording); }

    std::shared_ptr<Recording> recording;
};

std::unique_ptr<nvdsinfer::TrtEngine> open(const std::string &path, int32_t max_batch) {
    try {
        return std::make_unique<nvdsinfer::TrtEngine>(std::make_unique<Engine>(read(path, max_batch)));
    } catch (const std::exception &problem) {
        dsInferError("%s", problem.what());
        return nullptr;
    }
}

}  // namespace

std::unique_ptr<nvinfer1::ILogger> gTrtLogger = std::make_unique<nvinfer1::ILogger>();

bool initLibNvInferPlugins(void *, const char *) { return true; }

// DeepStream's wrappers of TensorRT's builder. Only these functions are called.
namespace nvdsinfer {

// The library with the logging functions is not published.
void dsInferLogPrint__(NvDsInferLogLevel level, const char *format, ...) {
    if (level == NVDSINFER_LOG_DEBUG || level == NVDSINFER_LOG_INFO) return;
    std::va_list arguments;
    va_start(arguments, format);
    std::fputs("nvdsinfer: ", stderr);
    std::vfprintf(stderr, format, arguments);
    std::fputc('\n', stderr);
    va_end(arguments);
}

TrtModelBuilder::TrtModelBuilder(int gpu, nvinfer1::ILogger &logger, const std::shared_ptr<DlLibHandle> &library, bool)
    : m_GpuId(gpu), m_Logger(logger), m_DlLib(library) {}

std::unique_ptr<TrtEngine> TrtModelBuilder::buildModel(const NvDsInferContextInitParams &params, std::string &) {
    return open(params.onnxFilePath, params.maxBatchSize);
}

std::unique_ptr<TrtEngine> TrtModelBuilder::deserializeEngine(const std::string &path, int) { return open(path, 64); }

// A recording is a file already, so there is nothing to serialize.
NvDsInferStatus TrtModelBuilder::serializeEngine(const std::string &, nvinfer1::ICudaEngine &) {
    return NVDSINFER_CONFIG_FAILED;
}

TrtEngine::~TrtEngine() = default;

void TrtEngine::printEngineInfo() {
    dsInferInfo("recorded outputs, %d tensors", m_Engine->getNbIOTensors());
}

NvDsInferStatus TrtEngine::getFullDimsLayersInfo(int, std::vector<NvDsInferBatchDimsLayerInfo> &layers) {
    layers.clear();
    for (int index = 0; index < m_Engine->getNbIOTensors(); index++) {
        NvDsInferBatchDimsLayerInfo layer{};
        layer.layerName = m_Engine->getIOTensorName(index);
        layer.bindingIndex = index;
        layer.isInput = m_Engine->getTensorIOMode(layer.layerName) == nvinfer1::TensorIOMode::kINPUT;
        layer.dataType = m_Engine->getTensorDataType(layer.layerName) == DataType::kHALF ? HALF : FLOAT;
        const auto shape = [&](nvinfer1::OptProfileSelector selector) {
            NvDsInferBatchDims dims;
            convertFullDims(m_Engine->getProfileShape(layer.layerName, 0, selector), dims);
            return dims;
        };
        layer.profileDims[kSELECTOR_MIN] = shape(nvinfer1::OptProfileSelector::kMIN);
        layer.profileDims[kSELECTOR_OPT] = shape(nvinfer1::OptProfileSelector::kOPT);
        layer.profileDims[kSELECTOR_MAX] = shape(nvinfer1::OptProfileSelector::kMAX);
        layer.inferDims = layer.profileDims[kSELECTOR_MAX].dims;
        layers.push_back(layer);
    }
    return NVDSINFER_SUCCESS;
}

}  // namespace nvdsinfer

// Replaces NVIDIA's CUDA kernels of these names.
#define CONVERT(name) \
    void name(float *, unsigned char *, unsigned int, unsigned int, unsigned int, float, float *, cudaStream_t) {}
CONVERT(NvDsInferConvert_C3ToP3Float)
CONVERT(NvDsInferConvert_C3ToL3Float)
CONVERT(NvDsInferConvert_C4ToP3Float)
CONVERT(NvDsInferConvert_C4ToL3Float)
CONVERT(NvDsInferConvert_C3ToP3RFloat)
CONVERT(NvDsInferConvert_C3ToL3RFloat)
CONVERT(NvDsInferConvert_C4ToP3RFloat)
CONVERT(NvDsInferConvert_C4ToL3RFloat)
CONVERT(NvDsInferConvert_C1ToP1Float)
void NvDsInferConvert_FtFTensor(float *, float *, unsigned int, unsigned int, unsigned int, float, float *, cudaStream_t) {}

// DBSCAN (cluster-mode 1 and 3) is in a library that is not published. Without a handle, nvinfer
// reports an error.
NvDsInferDBScanHandle NvDsInferDBScanCreate() { return nullptr; }
void NvDsInferDBScanDestroy(NvDsInferDBScanHandle) {}
void NvDsInferDBScanCluster(NvDsInferDBScanHandle, NvDsInferDBScanClusteringParams *, NvDsInferObjectDetectionInfo *,
                            size_t *) {}
void NvDsInferDBScanClusterHybrid(NvDsInferDBScanHandle, NvDsInferDBScanClusteringParams *,
                                  NvDsInferObjectDetectionInfo *, size_t *) {}
