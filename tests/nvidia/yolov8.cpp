// SPDX-License-Identifier: MIT OR Apache-2.0
// A function with which nvinfer parses the output of YOLOv8, `[4+C,N]`
// (`parse-bbox-func-name=NvDsInferParseYolov8`). It is written the way users do it: for each anchor
// it takes the best class, if its score reaches the class's threshold. nvinfer itself parses only
// outputs of DetectNet.

#include <vector>

#include "nvdsinfer_custom_impl.h"

extern "C" bool NvDsInferParseYolov8(const std::vector<NvDsInferLayerInfo> &layers, const NvDsInferNetworkInfo &,
                                     const NvDsInferParseDetectionParams &params,
                                     std::vector<NvDsInferObjectDetectionInfo> &objects) {
    if (layers.size() != 1 || layers[0].dataType != FLOAT || layers[0].inferDims.numDims != 2) return false;
    const auto *rows = static_cast<const float *>(layers[0].buffer);
    const unsigned classes = layers[0].inferDims.d[0] - 4, anchors = layers[0].inferDims.d[1];
    // Goes through the scores row by row, in the order of memory.
    static thread_local std::vector<float> best;
    static thread_local std::vector<unsigned> best_class;
    best.assign(rows + 4 * anchors, rows + 5 * anchors);
    best_class.assign(anchors, 0);
    for (unsigned c = 1; c < classes; c++) {
        const float *row = rows + (4 + c) * anchors;
        for (unsigned i = 0; i < anchors; i++) {
            if (row[i] > best[i]) {
                best[i] = row[i];
                best_class[i] = c;
            }
        }
    }
    for (unsigned i = 0; i < anchors; i++) {
        if (best_class[i] >= params.numClassesConfigured || best[i] < params.perClassPreclusterThreshold[best_class[i]])
            continue;
        const float width = rows[2 * anchors + i], height = rows[3 * anchors + i];
        NvDsInferObjectDetectionInfo object{};
        object.classId = best_class[i];
        object.left = rows[i] - width / 2;
        object.top = rows[anchors + i] - height / 2;
        object.width = width;
        object.height = height;
        object.detectionConfidence = best[i];
        objects.push_back(object);
    }
    return true;
}
