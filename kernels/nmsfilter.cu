// The module that the plugin loads; interface.cuh says how it is driven.
#include "decode.cuh"
#include "order.cuh"
#include "decide.cuh"
#include "publish.cuh"
