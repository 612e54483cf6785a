// SPDX-License-Identifier: MIT OR Apache-2.0
// Asserts the size of DeepStream's structures, and the offset of every member.
//
// In: the structures, from metadata.h or from NVIDIA's headers, and their version DEEPSTREAM. Out:
// a compiler error for each number that differs. The numbers follow from the public headers of each
// version on platforms with 64-bit pointers.
#pragma once

#include <stddef.h>

// Selects the number of the version. The arguments are for 6.0, 6.1, 6.2 to 7.0, 7.1, 8.0, and 9.0
// to 9.1.
#if DEEPSTREAM >= 90
#define BY_VERSION(v60, v61, v62, v71, v80, v90) v90
#elif DEEPSTREAM >= 80
#define BY_VERSION(v60, v61, v62, v71, v80, v90) v80
#elif DEEPSTREAM >= 71
#define BY_VERSION(v60, v61, v62, v71, v80, v90) v71
#elif DEEPSTREAM >= 62
#define BY_VERSION(v60, v61, v62, v71, v80, v90) v62
#elif DEEPSTREAM >= 61
#define BY_VERSION(v60, v61, v62, v71, v80, v90) v61
#elif DEEPSTREAM >= 60
#define BY_VERSION(v60, v61, v62, v71, v80, v90) v60
#else
#error "there is no table for versions before 6.0"
#endif
#define UNTIL_71_OR_91(until_71, v91) BY_VERSION(until_71, until_71, until_71, until_71, v91, v91)
#define UNTIL_80_OR_90(until_80, v90) BY_VERSION(until_80, until_80, until_80, until_80, until_80, v90)

#define SIZE(type, bytes) _Static_assert(sizeof(type) == (bytes), "size of " #type)
#define AT(type, member, offset) \
    _Static_assert(offsetof(type, member) == (offset), #type "." #member)

SIZE(NvDsMeta, 72);
AT(NvDsMeta, meta, 0);
AT(NvDsMeta, meta_data, 16);
AT(NvDsMeta, user_data, 24);
AT(NvDsMeta, meta_type, 32);
AT(NvDsMeta, copyfunc, 40);
AT(NvDsMeta, freefunc, 48);
AT(NvDsMeta, gst_to_nvds_meta_transform_func, 56);
AT(NvDsMeta, gst_to_nvds_meta_release_func, 64);

SIZE(NvDsBaseMeta, 40);
AT(NvDsBaseMeta, batch_meta, 0);
AT(NvDsBaseMeta, meta_type, 8);
AT(NvDsBaseMeta, uContext, 16);
AT(NvDsBaseMeta, copy_func, 24);
AT(NvDsBaseMeta, release_func, 32);

SIZE(NvDsMetaPool, 56);
AT(NvDsMetaPool, meta_type, 0);
AT(NvDsMetaPool, max_elements_in_pool, 4);
AT(NvDsMetaPool, element_size, 8);
AT(NvDsMetaPool, num_empty_elements, 12);
AT(NvDsMetaPool, num_full_elements, 16);
AT(NvDsMetaPool, empty_list, 24);
AT(NvDsMetaPool, full_list, 32);
AT(NvDsMetaPool, copy_func, 40);
AT(NvDsMetaPool, release_func, 48);

SIZE(NvDsBatchMeta, 192);
AT(NvDsBatchMeta, base_meta, 0);
AT(NvDsBatchMeta, max_frames_in_batch, 40);
AT(NvDsBatchMeta, num_frames_in_batch, 44);
AT(NvDsBatchMeta, frame_meta_pool, 48);
AT(NvDsBatchMeta, obj_meta_pool, 56);
AT(NvDsBatchMeta, classifier_meta_pool, 64);
AT(NvDsBatchMeta, display_meta_pool, 72);
AT(NvDsBatchMeta, user_meta_pool, 80);
AT(NvDsBatchMeta, label_info_meta_pool, 88);
AT(NvDsBatchMeta, frame_meta_list, 96);
AT(NvDsBatchMeta, batch_user_meta_list, 104);
AT(NvDsBatchMeta, meta_mutex, 112);
AT(NvDsBatchMeta, misc_batch_info, 128);
AT(NvDsBatchMeta, reserved, 160);

SIZE(NvDsFrameMeta, BY_VERSION(200, 200, 200, 200, 232, 232));
AT(NvDsFrameMeta, base_meta, 0);
AT(NvDsFrameMeta, pad_index, 40);
AT(NvDsFrameMeta, batch_id, 44);
AT(NvDsFrameMeta, frame_num, 48);
AT(NvDsFrameMeta, buf_pts, 56);
AT(NvDsFrameMeta, ntp_timestamp, 64);
AT(NvDsFrameMeta, source_id, 72);
AT(NvDsFrameMeta, num_surfaces_per_frame, 76);
AT(NvDsFrameMeta, source_frame_width, 80);
AT(NvDsFrameMeta, source_frame_height, 84);
AT(NvDsFrameMeta, surface_type, 88);
AT(NvDsFrameMeta, surface_index, 92);
AT(NvDsFrameMeta, num_obj_meta, 96);
AT(NvDsFrameMeta, bInferDone, 100);
AT(NvDsFrameMeta, obj_meta_list, 104);
AT(NvDsFrameMeta, display_meta_list, 112);
AT(NvDsFrameMeta, frame_user_meta_list, 120);
AT(NvDsFrameMeta, misc_frame_info, 128);
AT(NvDsFrameMeta, pipeline_width, 160);
AT(NvDsFrameMeta, pipeline_height, 164);
#if DEEPSTREAM >= 80
AT(NvDsFrameMeta, sensorInfo_meta, 168);
SIZE(NvDsSensorInfo_meta, 32);
AT(NvDsSensorInfo_meta, source_id, 0);
AT(NvDsSensorInfo_meta, uri, 8);
AT(NvDsSensorInfo_meta, sensor_id, 16);
AT(NvDsSensorInfo_meta, sensor_name, 24);
#endif
AT(NvDsFrameMeta, reserved, BY_VERSION(168, 168, 168, 168, 200, 200));

SIZE(NvBbox_Coords, 16);
AT(NvBbox_Coords, left, 0);
AT(NvBbox_Coords, top, 4);
AT(NvBbox_Coords, width, 8);
AT(NvBbox_Coords, height, 12);
SIZE(NvDsComp_BboxInfo, 16);
AT(NvDsComp_BboxInfo, org_bbox_coords, 0);

SIZE(NvDsObjectMeta, UNTIL_80_OR_90(544, 552));
AT(NvDsObjectMeta, base_meta, 0);
AT(NvDsObjectMeta, parent, 40);
AT(NvDsObjectMeta, unique_component_id, 48);
AT(NvDsObjectMeta, class_id, 52);
AT(NvDsObjectMeta, object_id, 56);
AT(NvDsObjectMeta, detector_bbox_info, 64);
AT(NvDsObjectMeta, tracker_bbox_info, 80);
AT(NvDsObjectMeta, confidence, 96);
AT(NvDsObjectMeta, tracker_confidence, 100);
AT(NvDsObjectMeta, rect_params, 104);
AT(NvDsObjectMeta, mask_params, UNTIL_80_OR_90(208, 216));
AT(NvDsObjectMeta, text_params, UNTIL_80_OR_90(232, 240));
AT(NvDsObjectMeta, obj_label, UNTIL_80_OR_90(336, 344));
AT(NvDsObjectMeta, classifier_meta_list, UNTIL_80_OR_90(464, 472));
AT(NvDsObjectMeta, obj_user_meta_list, UNTIL_80_OR_90(472, 480));
AT(NvDsObjectMeta, misc_obj_info, UNTIL_80_OR_90(480, 488));
AT(NvDsObjectMeta, reserved, UNTIL_80_OR_90(512, 520));

SIZE(NvDsUserMeta, 48);
AT(NvDsUserMeta, base_meta, 0);
AT(NvDsUserMeta, user_meta_data, 40);

SIZE(NvOSD_ColorParams, 32);
AT(NvOSD_ColorParams, red, 0);
AT(NvOSD_ColorParams, green, 8);
AT(NvOSD_ColorParams, blue, 16);
AT(NvOSD_ColorParams, alpha, 24);

SIZE(NvOSD_RectParams, UNTIL_80_OR_90(104, 112));
AT(NvOSD_RectParams, left, 0);
AT(NvOSD_RectParams, top, 4);
AT(NvOSD_RectParams, width, 8);
AT(NvOSD_RectParams, height, 12);
AT(NvOSD_RectParams, border_width, 16);
AT(NvOSD_RectParams, border_color, 24);
AT(NvOSD_RectParams, has_bg_color, 56);
AT(NvOSD_RectParams, reserved, 60);
AT(NvOSD_RectParams, bg_color, 64);
AT(NvOSD_RectParams, has_color_info, 96);
AT(NvOSD_RectParams, color_id, 100);
#if DEEPSTREAM >= 90
AT(NvOSD_RectParams, rotation_angle, 104);
#endif

SIZE(NvOSD_MaskParams, 24);
AT(NvOSD_MaskParams, data, 0);
AT(NvOSD_MaskParams, size, 8);
AT(NvOSD_MaskParams, threshold, 12);
AT(NvOSD_MaskParams, width, 16);
AT(NvOSD_MaskParams, height, 20);

SIZE(NvOSD_FontParams, 48);
AT(NvOSD_FontParams, font_name, 0);
AT(NvOSD_FontParams, font_size, 8);
AT(NvOSD_FontParams, font_color, 16);

SIZE(NvOSD_TextParams, 104);
AT(NvOSD_TextParams, display_text, 0);
AT(NvOSD_TextParams, x_offset, 8);
AT(NvOSD_TextParams, y_offset, 12);
AT(NvOSD_TextParams, font_params, 16);
AT(NvOSD_TextParams, set_bg_clr, 64);
AT(NvOSD_TextParams, text_bg_clr, 72);

SIZE(NvDsInferDims, 40);
AT(NvDsInferDims, numDims, 0);
AT(NvDsInferDims, d, 4);
AT(NvDsInferDims, numElements, 36);

SIZE(NvDsInferLayerInfo, 72);
AT(NvDsInferLayerInfo, dataType, 0);
AT(NvDsInferLayerInfo, inferDims, 4);
AT(NvDsInferLayerInfo, bindingIndex, 44);
AT(NvDsInferLayerInfo, layerName, 48);
AT(NvDsInferLayerInfo, buffer, 56);
AT(NvDsInferLayerInfo, isInput, 64);

SIZE(NvDsInferNetworkInfo, 12);
AT(NvDsInferNetworkInfo, width, 0);
AT(NvDsInferNetworkInfo, height, 4);
AT(NvDsInferNetworkInfo, channels, 8);

SIZE(NvDsInferTensorMeta, BY_VERSION(64, 64, 64, 72, 72, 72));
AT(NvDsInferTensorMeta, unique_id, 0);
AT(NvDsInferTensorMeta, num_output_layers, 4);
AT(NvDsInferTensorMeta, output_layers_info, 8);
AT(NvDsInferTensorMeta, out_buf_ptrs_host, 16);
AT(NvDsInferTensorMeta, out_buf_ptrs_dev, 24);
AT(NvDsInferTensorMeta, gpu_id, 32);
AT(NvDsInferTensorMeta, priv_data, 40);
AT(NvDsInferTensorMeta, network_info, 48);
#if DEEPSTREAM >= 61
AT(NvDsInferTensorMeta, maintain_aspect_ratio, 60);
#endif
#if DEEPSTREAM >= 71
AT(NvDsInferTensorMeta, symmetric_padding, 64);
#endif

SIZE(NvBufSurface, UNTIL_71_OR_91(64, 72));
AT(NvBufSurface, gpuId, 0);
AT(NvBufSurface, batchSize, 4);
AT(NvBufSurface, numFilled, 8);
AT(NvBufSurface, isContiguous, 12);
AT(NvBufSurface, memType, 16);
AT(NvBufSurface, surfaceList, 24);

SIZE(NvBufSurfaceParams, UNTIL_71_OR_91(384, 416));
AT(NvBufSurfaceParams, width, 0);
AT(NvBufSurfaceParams, height, 4);
AT(NvBufSurfaceParams, pitch, 8);
AT(NvBufSurfaceParams, colorFormat, 12);
AT(NvBufSurfaceParams, layout, 16);
AT(NvBufSurfaceParams, planeParams, 48);
AT(NvBufSurfaceParams, mappedAddr, 280);

SIZE(NvDsRoiMeta, BY_VERSION(232, 232, 240, 240, 240, 248));
AT(NvDsRoiMeta, roi, 0);
AT(NvDsRoiMeta, roi_polygon, UNTIL_80_OR_90(104, 112));
AT(NvDsRoiMeta, converted_buffer, UNTIL_80_OR_90(168, 176));
AT(NvDsRoiMeta, frame_meta, UNTIL_80_OR_90(176, 184));
AT(NvDsRoiMeta, scale_ratio_x, UNTIL_80_OR_90(184, 192));
AT(NvDsRoiMeta, scale_ratio_y, UNTIL_80_OR_90(192, 200));
AT(NvDsRoiMeta, offset_left, UNTIL_80_OR_90(200, 208));
AT(NvDsRoiMeta, offset_top, UNTIL_80_OR_90(208, 216));
AT(NvDsRoiMeta, classifier_meta_list, UNTIL_80_OR_90(216, 224));
AT(NvDsRoiMeta, roi_user_meta_list, UNTIL_80_OR_90(224, 232));
#if DEEPSTREAM >= 62
AT(NvDsRoiMeta, object_meta, UNTIL_80_OR_90(232, 240));
#endif

_Static_assert(NVDS_BATCH_META == 1 && NVDS_FRAME_META == 2 && NVDS_OBJ_META == 3 && NVDS_USER_META == 7, "types");
_Static_assert(NVDSINFER_TENSOR_OUTPUT_META == 12 && NVDSINFER_SEGMENTATION_META == 13, "types of outputs");
_Static_assert(NVDS_BATCH_GST_META == 4097, "type of a batch's GstMeta");
_Static_assert(FLOAT == 0 && HALF == 1 && INT8 == 2 && INT32 == 3, "element types");
#if DEEPSTREAM >= 71
_Static_assert(INT64 == 4, "element types");
#endif
#if DEEPSTREAM >= 80
_Static_assert(UINT8 == 5, "element types");
#endif
_Static_assert(MAX_LABEL_SIZE == 128 && UNTRACKED_OBJECT_ID == G_MAXUINT64, "constants");
