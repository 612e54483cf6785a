// SPDX-License-Identifier: MIT OR Apache-2.0
// Prints the sizes and offsets with which src/ffi.rs is compared, for layouts.txt:
// gcc -DMINOR=28 layouts.c $(pkg-config --cflags gstreamer-analytics-1.0) && ./a.out
#define GST_USE_UNSTABLE_API
#include <stddef.h>
#include <stdio.h>
#include <gst/analytics/analytics.h>

#define SIZE(type) printf("%s %zu\n", #type, sizeof(type))
#define OFFSET(type, field) printf("%s.%s %zu\n", #type, #field, offsetof(type, field))

int main(void)
{
    SIZE(GstAnalyticsMtd);
    OFFSET(GstAnalyticsMtd, id);
    OFFSET(GstAnalyticsMtd, meta);
    SIZE(GstAnalyticsRelationMetaInitParams);
    OFFSET(GstAnalyticsRelationMetaInitParams, initial_relation_order);
    OFFSET(GstAnalyticsRelationMetaInitParams, initial_buf_size);
#if MINOR >= 26
    SIZE(GstTensor);
    OFFSET(GstTensor, id);
    OFFSET(GstTensor, layout);
    OFFSET(GstTensor, data_type);
    OFFSET(GstTensor, data);
    OFFSET(GstTensor, dims_order);
    OFFSET(GstTensor, num_dims);
    OFFSET(GstTensor, dims);
    SIZE(GstTensorMeta);
    OFFSET(GstTensorMeta, meta);
    OFFSET(GstTensorMeta, num_tensors);
    OFFSET(GstTensorMeta, tensors);
#endif
#if MINOR >= 28
    SIZE(GstAnalyticsBatchMeta);
    OFFSET(GstAnalyticsBatchMeta, meta);
    OFFSET(GstAnalyticsBatchMeta, streams);
    OFFSET(GstAnalyticsBatchMeta, n_streams);
    SIZE(GstAnalyticsBatchStream);
    OFFSET(GstAnalyticsBatchStream, index);
    OFFSET(GstAnalyticsBatchStream, sticky_events);
    OFFSET(GstAnalyticsBatchStream, n_sticky_events);
    OFFSET(GstAnalyticsBatchStream, objects);
    OFFSET(GstAnalyticsBatchStream, n_objects);
    OFFSET(GstAnalyticsBatchStream, padding);
#endif
    return 0;
}
