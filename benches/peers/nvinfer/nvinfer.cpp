// SPDX-License-Identifier: MIT OR Apache-2.0
// Implements nvinfer.h with nvinfer's class DetectPostprocessor: sets the fields that its
// initialization and its parser would set, calls its suppression, and reads the result.

#include <chrono>
#include <cmath>
#include <cstdlib>
#include <utility>

#include "nvdsinfer_context_impl.h"

#include "nvinfer.h"

using nvdsinfer::DetectPostprocessor;

// Gives access to private members: C++ does not check access in the arguments of an explicit
// instantiation.
namespace {
template <class Name, auto member>
struct Grant {
    friend constexpr auto access(Name) { return member; }
};
#define GRANT(Name, member)                                                                                       \
    struct Name {                                                                                                 \
        friend constexpr auto access(Name);                                                                       \
    };                                                                                                            \
    template struct Grant<Name, &DetectPostprocessor::member>
GRANT(Suppress, clusterAndFillDetectionOutputNMS);
GRANT(ClassCount, m_NumDetectedClasses);
GRANT(ClassParams, m_PerClassDetectionParams);
GRANT(ClassObjects, m_PerClassObjectList);
#undef GRANT
} // namespace

// Functions that the class declares and other sources of nvinfer define. They are never called; a
// call would abort the program.
namespace nvdsinfer {
#define NOT_BUILT                                                                                                 \
    { std::abort(); }
InferPostprocessor::~InferPostprocessor() = default;
NvDsInferStatus InferPostprocessor::initResource(const NvDsInferContextInitParams &) NOT_BUILT
NvDsInferStatus InferPostprocessor::copyBuffersToHostMemory(NvDsInferBatch &, CudaStream &) NOT_BUILT
NvDsInferStatus InferPostprocessor::postProcessHost(NvDsInferBatch &, NvDsInferContextBatchOutput &) NOT_BUILT
NvDsInferStatus DetectPostprocessor::initResource(const NvDsInferContextInitParams &) NOT_BUILT
NvDsInferStatus DetectPostprocessor::parseEachBatch(const std::vector<NvDsInferLayerInfo> &, NvDsInferFrameOutput &)
NOT_BUILT
std::string dataType2Str(NvDsInferDataType) NOT_BUILT
} // namespace nvdsinfer
void NvDsInferDBScanCluster(NvDsInferDBScan *, NvDsInferDBScanClusteringParams *, NvDsInferObjectDetectionInfo *,
                            size_t *) NOT_BUILT
void NvDsInferDBScanClusterHybrid(NvDsInferDBScan *, NvDsInferDBScanClusteringParams *,
                                  NvDsInferObjectDetectionInfo *, size_t *) NOT_BUILT

// Suppresses with the thresholds of each class. Classes beyond `classes` have the last thresholds.
static ptrdiff_t suppress(const NvinferObject *objects, size_t count, const NvinferThresholds *thresholds,
                          size_t classes, uint32_t *survivors, size_t runs, double *times) {
    if (count > (1u << 24))
        return -1;
    std::vector<std::vector<NvDsInferObjectDetectionInfo>> by_class(1);
    for (size_t i = 0; i < count; i++) {
        const NvinferObject &object = objects[i];
        if (object.class_index >= by_class.size())
            by_class.resize(object.class_index + size_t{1});
        // Suppression copies the angle without reading it, so it can hold the index.
        by_class[object.class_index].push_back({object.class_index, object.left, object.top, object.width,
                                                object.height, object.score, static_cast<float>(i)});
    }
    std::vector<NvDsInferDetectionParams> params(by_class.size());
    for (size_t c = 0; c < params.size(); c++) {
        const NvinferThresholds &of_class = thresholds[c < classes ? c : classes - 1];
        params[c].nmsIOUThreshold = of_class.iou;
        params[c].postClusterThreshold = of_class.postcluster;
        params[c].topK = of_class.topk;
    }

    DetectPostprocessor processor(0);
    processor.*access(ClassCount{}) = static_cast<uint32_t>(by_class.size());
    processor.*access(ClassParams{}) = std::move(params);
    processor.*access(ClassObjects{}) = std::move(by_class);

    NvDsInferDetectionOutput output{};
    for (size_t run = 0; run < runs; run++) {
        const auto start = std::chrono::steady_clock::now();
        (processor.*access(Suppress{}))(output);
        times[run] = std::chrono::duration<double, std::micro>(std::chrono::steady_clock::now() - start).count();
        if (run + 1 < runs)
            delete[] output.objects;
    }
    for (unsigned i = 0; i < output.numObjects; i++)
        survivors[i] = static_cast<uint32_t>(output.objects[i].rotation_angle);
    delete[] output.objects;
    return output.numObjects;
}

extern "C" __attribute__((visibility("default"))) ptrdiff_t
nvinfer_suppress(const NvinferObject *objects, size_t count, const NvinferThresholds *thresholds, uint32_t *survivors,
                 size_t runs, double *times) {
    return suppress(objects, count, thresholds, 1, survivors, runs, times);
}

extern "C" __attribute__((visibility("default"))) ptrdiff_t
nvinfer_suppress_classes(const NvinferObject *objects, size_t count, const NvinferThresholds *thresholds,
                         size_t classes, uint32_t *survivors) {
    for (size_t i = 0; i < count; i++)
        if (objects[i].class_index >= classes)
            return -1;
    double time;
    return suppress(objects, count, thresholds, classes, survivors, 1, &time);
}

extern "C" __attribute__((visibility("default"))) float nvinfer_overlap(const NvinferObject *first,
                                                                        const NvinferObject *second) {
    const NvinferObject pair[] = {{first->left, first->top, first->width, first->height, 1.0f, 0},
                                  {second->left, second->top, second->width, second->height, 0.5f, 0}};
    const auto is_suppressed = [&](float iou) {
        const NvinferThresholds thresholds{iou, -INFINITY, -1};
        uint32_t survivors[2];
        double time;
        return nvinfer_suppress(pair, 2, &thresholds, survivors, 1, &time) == 1;
    };
    if (!is_suppressed(0.0f))
        return 0.0f;
    // Bisects until no float is between the greatest threshold that suppresses and the smallest
    // that does not.
    float low = 0.0f, high = 2.0f;
    for (float middle; (middle = low + (high - low) / 2) != low && middle != high;)
        (is_suppressed(middle) ? low : high) = middle;
    return high;
}
