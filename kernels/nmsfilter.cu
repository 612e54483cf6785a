// The module that the plugin loads; interface.cuh says how it is driven.
#include "decode.cuh"
#include "map.cuh"
#include "reduce.cuh"
#include "publish.cuh"
