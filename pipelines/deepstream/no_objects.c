/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* A parser of detections for nvinfer that finds none, and reads no output. With it nvinfer can run as a
 * detector whose outputs are not copied to the host; nmsfilter reads them on the GPU (docs/jetson.md).
 *
 *   cc -shared -fPIC -o libno_objects.so no_objects.c
 *
 * nvinfer calls it as an NvDsInferParseCustomFunc, of which all parameters are C++ references: pointers
 * in C. */
#include <stdbool.h>

bool NvDsInferParseNoObjects (const void *layers, const void *network, const void *thresholds,
    const void *objects);

bool
NvDsInferParseNoObjects (const void *layers, const void *network, const void *thresholds,
    const void *objects)
{
  (void) layers;
  (void) network;
  (void) thresholds;
  (void) objects;
  return true;
}
