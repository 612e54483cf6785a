// SPDX-License-Identifier: MIT OR Apache-2.0
// DeepStream's metadata by version: names, types and order of the members. A test compares
// their offsets with the table of the element (layout.rs).
//
// In: DEEPSTREAM, the version without its point (60, 61, 62, 63, 64, 70, 71, 80, 90 or 91). Out:
// the structures of this version. They have the names of NVIDIA's headers, so that the stand-in
// compiles with both.
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include <gst/gst.h>

#ifndef DEEPSTREAM
#error "define DEEPSTREAM as the version without its point, such as 71"
#endif

#define MAX_USER_FIELDS 4
#define MAX_RESERVED_FIELDS 4
#define MAX_LABEL_SIZE 128
#define UNTRACKED_OBJECT_ID G_MAXUINT64
#define DS_MAX_POLYGON_POINTS 8
#define NVDSINFER_MAX_DIMS 8

typedef gpointer (*NvDsMetaCopyFunc)(gpointer data, gpointer user_data);
typedef void (*NvDsMetaReleaseFunc)(gpointer data, gpointer user_data);

typedef struct _NvDsBatchMeta NvDsBatchMeta;
typedef struct _NvDsFrameMeta NvDsFrameMeta;
typedef struct _NvDsObjectMeta NvDsObjectMeta;
typedef struct NvBufSurfaceParams NvBufSurfaceParams;

typedef enum {
    NVDS_BATCH_META = 1,
    NVDS_FRAME_META = 2,
    NVDS_OBJ_META = 3,
    NVDS_USER_META = 7,
    NVDSINFER_TENSOR_OUTPUT_META = 12,
    NVDSINFER_SEGMENTATION_META = 13,
#if DEEPSTREAM >= 80
    NVDS_PREPROCESS_BATCH_META = 28,
    NVDS_ROI_META = 30,
#elif DEEPSTREAM >= 71
    NVDS_ROI_META = 29,
#endif
    NVDS_BATCH_GST_META = 4097,
    NVDS_LAST_META = G_MAXINT32
} NvDsMetaType;

// Frames in NVMM memory, declared by libnvbufsurface.

#define STRUCTURE_PADDING 4
#define NVBUF_MAX_PLANES 4

// The values of these enumerations that the stand-in needs.
typedef enum { NVBUF_COLOR_FORMAT_NV12 = 6 } NvBufSurfaceColorFormat;
typedef enum { NVBUF_LAYOUT_PITCH = 0 } NvBufSurfaceLayout;
typedef enum { NVBUF_MEM_SYSTEM = 6 } NvBufSurfaceMemType;

typedef struct {
    uint32_t num_planes;
    uint32_t width[NVBUF_MAX_PLANES], height[NVBUF_MAX_PLANES], pitch[NVBUF_MAX_PLANES];
    uint32_t offset[NVBUF_MAX_PLANES], psize[NVBUF_MAX_PLANES], bytesPerPix[NVBUF_MAX_PLANES];
    void *_reserved[STRUCTURE_PADDING * NVBUF_MAX_PLANES];
} NvBufSurfacePlaneParams;

typedef struct {
    void *addr[NVBUF_MAX_PLANES];
    void *eglImage;
#if DEEPSTREAM >= 80
    void *nvmmPtr;
    void *cudaPtr;
#endif
    void *_reserved[STRUCTURE_PADDING];
} NvBufSurfaceMappedAddr;

struct NvBufSurfaceParams {
    uint32_t width, height, pitch;
    NvBufSurfaceColorFormat colorFormat;
    NvBufSurfaceLayout layout;
    uint64_t bufferDesc;
    uint32_t dataSize;
    void *dataPtr;
    NvBufSurfacePlaneParams planeParams;
    NvBufSurfaceMappedAddr mappedAddr;
#if DEEPSTREAM >= 80
    void *paramex;
    void *cudaBuffer;
    void *_reserved[STRUCTURE_PADDING];
#elif DEEPSTREAM >= 61
    void *paramex;
    void *_reserved[STRUCTURE_PADDING - 1];
#else
    void *_reserved[STRUCTURE_PADDING];
#endif
};

typedef struct {
    uint32_t gpuId, batchSize, numFilled;
    bool isContiguous;
    NvBufSurfaceMemType memType;
    NvBufSurfaceParams *surfaceList;
#if DEEPSTREAM >= 80
    bool isImportedBuf;
#endif
    void *_reserved[STRUCTURE_PADDING];
} NvBufSurface;

// Shapes that nvdsosd draws.

typedef struct {
    float left, top, width, height;
} NvBbox_Coords;

typedef struct {
    double red, green, blue, alpha;
} NvOSD_ColorParams;

typedef struct {
    char *font_name;
    unsigned int font_size;
    NvOSD_ColorParams font_color;
} NvOSD_FontParams;

typedef struct {
    char *display_text;
    unsigned int x_offset, y_offset;
    NvOSD_FontParams font_params;
    int set_bg_clr;
    NvOSD_ColorParams text_bg_clr;
} NvOSD_TextParams;

typedef struct {
    float left, top, width, height;
    unsigned int border_width;
    NvOSD_ColorParams border_color;
    unsigned int has_bg_color;
    unsigned int reserved;
    NvOSD_ColorParams bg_color;
    int has_color_info;
    int color_id;
#if DEEPSTREAM >= 90
    float rotation_angle;
#endif
} NvOSD_RectParams;

typedef struct {
    float *data;
    unsigned int size;
    float threshold;
    unsigned int width, height;
} NvOSD_MaskParams;

// Metadata of a batch.

typedef struct {
    NvDsMetaType meta_type;
    guint max_elements_in_pool;
    guint element_size;
    guint num_empty_elements;
    guint num_full_elements;
    GList *empty_list;
    GList *full_list;
    NvDsMetaCopyFunc copy_func;
    NvDsMetaReleaseFunc release_func;
} NvDsMetaPool;

typedef struct {
    NvDsBatchMeta *batch_meta;
    NvDsMetaType meta_type;
    void *uContext;
    NvDsMetaCopyFunc copy_func;
    NvDsMetaReleaseFunc release_func;
} NvDsBaseMeta;

struct _NvDsBatchMeta {
    NvDsBaseMeta base_meta;
    guint max_frames_in_batch;
    guint num_frames_in_batch;
    NvDsMetaPool *frame_meta_pool;
    NvDsMetaPool *obj_meta_pool;
    NvDsMetaPool *classifier_meta_pool;
    NvDsMetaPool *display_meta_pool;
    NvDsMetaPool *user_meta_pool;
    NvDsMetaPool *label_info_meta_pool;
    GList *frame_meta_list;
    GList *batch_user_meta_list;
    GRecMutex meta_mutex;
    gint64 misc_batch_info[MAX_USER_FIELDS];
    gint64 reserved[MAX_RESERVED_FIELDS];
};

#if DEEPSTREAM >= 80
typedef struct {
    guint source_id;
    const gchar *uri;
    const gchar *sensor_id;
    const gchar *sensor_name;
} NvDsSensorInfo_meta;
#endif

struct _NvDsFrameMeta {
    NvDsBaseMeta base_meta;
    guint pad_index;
    guint batch_id;
    gint frame_num;
    guint64 buf_pts;
    guint64 ntp_timestamp;
    guint source_id;
    gint num_surfaces_per_frame;
    guint source_frame_width, source_frame_height;
    guint surface_type;
    guint surface_index;
    guint num_obj_meta;
    gboolean bInferDone;
    GList *obj_meta_list;
    GList *display_meta_list;
    GList *frame_user_meta_list;
    gint64 misc_frame_info[MAX_USER_FIELDS];
    guint pipeline_width, pipeline_height;
#if DEEPSTREAM >= 80
    NvDsSensorInfo_meta sensorInfo_meta;
#endif
    gint64 reserved[MAX_RESERVED_FIELDS];
};

typedef struct {
    NvBbox_Coords org_bbox_coords;
} NvDsComp_BboxInfo;

struct _NvDsObjectMeta {
    NvDsBaseMeta base_meta;
    NvDsObjectMeta *parent;
    gint unique_component_id;
    gint class_id;
    guint64 object_id;
    NvDsComp_BboxInfo detector_bbox_info;
    NvDsComp_BboxInfo tracker_bbox_info;
    gfloat confidence;
    gfloat tracker_confidence;
    NvOSD_RectParams rect_params;
    NvOSD_MaskParams mask_params;
    NvOSD_TextParams text_params;
    gchar obj_label[MAX_LABEL_SIZE];
    GList *classifier_meta_list;
    GList *obj_user_meta_list;
    gint64 misc_obj_info[MAX_USER_FIELDS];
    gint64 reserved[MAX_RESERVED_FIELDS];
};

typedef struct {
    NvDsBaseMeta base_meta;
    void *user_meta_data;
} NvDsUserMeta;

// Regions of interest, attached by nvdspreprocess.

typedef struct {
    NvOSD_RectParams roi;
    guint roi_polygon[DS_MAX_POLYGON_POINTS][2];
    NvBufSurfaceParams *converted_buffer;
    NvDsFrameMeta *frame_meta;
    gdouble scale_ratio_x, scale_ratio_y;
    gdouble offset_left, offset_top;
    GList *classifier_meta_list;
    GList *roi_user_meta_list;
#if DEEPSTREAM >= 62
    NvDsObjectMeta *object_meta;
#endif
} NvDsRoiMeta;

// Tensors, attached by nvinfer and nvinferserver.

typedef enum {
    FLOAT = 0,
    HALF = 1,
    INT8 = 2,
    INT32 = 3,
#if DEEPSTREAM >= 71
    INT64 = 4,
#endif
#if DEEPSTREAM >= 80
    UINT8 = 5,
#endif
} NvDsInferDataType;

typedef struct {
    unsigned int numDims;
    unsigned int d[NVDSINFER_MAX_DIMS];
    unsigned int numElements;
} NvDsInferDims;

typedef struct {
    NvDsInferDataType dataType;
    NvDsInferDims inferDims;
    int bindingIndex;
    const char *layerName;
    void *buffer;
    int isInput;
} NvDsInferLayerInfo;

typedef struct {
    unsigned int width, height, channels;
} NvDsInferNetworkInfo;

typedef struct {
    guint unique_id;
    guint num_output_layers;
    NvDsInferLayerInfo *output_layers_info;
    void **out_buf_ptrs_host;
    void **out_buf_ptrs_dev;
    gint gpu_id;
    void *priv_data;
    NvDsInferNetworkInfo network_info;
#if DEEPSTREAM >= 61
    gboolean maintain_aspect_ratio;
#endif
#if DEEPSTREAM >= 71
    gboolean symmetric_padding;
#endif
} NvDsInferTensorMeta;

// The GstMeta that contains a batch.

typedef struct {
    GstMeta meta;
    gpointer meta_data;
    gpointer user_data;
    gint meta_type;
    NvDsMetaCopyFunc copyfunc;
    NvDsMetaReleaseFunc freefunc;
    NvDsMetaCopyFunc gst_to_nvds_meta_transform_func;
    NvDsMetaReleaseFunc gst_to_nvds_meta_release_func;
} NvDsMeta;

// Functions that nmsfilter calls.

GType nvds_meta_api_get_type(void);
NvDsBatchMeta *gst_buffer_get_nvds_batch_meta(GstBuffer *buffer);
void nvds_acquire_meta_lock(NvDsBatchMeta *batch);
void nvds_release_meta_lock(NvDsBatchMeta *batch);
NvDsObjectMeta *nvds_acquire_obj_meta_from_pool(NvDsBatchMeta *batch);
void nvds_add_obj_meta_to_frame(NvDsFrameMeta *frame, NvDsObjectMeta *object, NvDsObjectMeta *parent);
void nvds_remove_user_meta_from_frame(NvDsFrameMeta *frame, NvDsUserMeta *user);
void nvds_remove_user_meta_from_object(NvDsObjectMeta *object, NvDsUserMeta *user);
void nvds_version(unsigned int *major, unsigned int *minor);
