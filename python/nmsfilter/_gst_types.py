# SPDX-License-Identifier: MIT OR Apache-2.0
"""The structures and numbers of nmsfilter/gst.h, which a test compares with it (tests/test_gst.py)."""

import ctypes

ELEMENT_TYPES = {"float32": 0, "float16": 1, "int8": 2, "uint8": 3, "int32": 4, "int64": 5}
LETTERBOXES = {"none": 1, "center": 2, "top-left": 3}


class Memory:
    """NmsfilterGstMemory."""

    HOST = 1
    DEVICE = 2


class Model(ctypes.Structure):
    """NmsfilterGstModel."""

    _fields_ = [
        ("size", ctypes.c_size_t),
        ("width", ctypes.c_uint32),
        ("height", ctypes.c_uint32),
        ("letterbox", ctypes.c_uint32),
        ("end2end", ctypes.c_uint32),
        ("labels", ctypes.c_void_p),
        ("label_count", ctypes.c_size_t),
        ("task", ctypes.c_char_p),
        ("keypoint_count", ctypes.c_uint32),
        ("keypoint_components", ctypes.c_uint32),
        ("keypoint_layout", ctypes.c_char_p),
        ("suppressed", ctypes.c_uint32),
        ("queries", ctypes.c_uint32),
    ]


class Tensor(ctypes.Structure):
    """NmsfilterGstTensor."""

    _fields_ = [
        ("size", ctypes.c_size_t),
        ("id", ctypes.c_char_p),
        ("element_type", ctypes.c_uint32),
        ("dimensions", ctypes.c_uint32),
        ("shape", ctypes.c_uint64 * 8),
        ("memory", ctypes.c_uint32),
        ("cuda_device", ctypes.c_uint32),
        ("data", ctypes.c_void_p),
        ("bytes", ctypes.c_size_t),
        ("release", ctypes.c_void_p),
        ("user_data", ctypes.c_void_p),
        ("cuda_event", ctypes.c_void_p),
        ("cuda_stream", ctypes.c_void_p),
        ("scale", ctypes.c_float),
        ("zero_point", ctypes.c_int32),
        ("model", ctypes.c_void_p),
        ("source", ctypes.c_char_p),
        ("region", ctypes.c_uint32 * 4),
        ("has_parent", ctypes.c_uint32),
        ("parent", ctypes.c_int32),
    ]


class Region(ctypes.Structure):
    """NmsfilterGstRegion."""

    _fields_ = [
        ("x_min", ctypes.c_double),
        ("y_min", ctypes.c_double),
        ("x_max", ctypes.c_double),
        ("y_max", ctypes.c_double),
        ("score", ctypes.c_double),
        ("class_id", ctypes.c_int32),
        ("id", ctypes.c_int32),
        ("parent_id", ctypes.c_int32),
        ("left", ctypes.c_uint32),
        ("top", ctypes.c_uint32),
        ("width", ctypes.c_uint32),
        ("height", ctypes.c_uint32),
        ("rotation", ctypes.c_float),
        ("center_x", ctypes.c_float),
        ("center_y", ctypes.c_float),
        ("oriented_width", ctypes.c_float),
        ("oriented_height", ctypes.c_float),
        ("keypoint_count", ctypes.c_uint32),
        ("keypoint_components", ctypes.c_uint32),
        ("mask_width", ctypes.c_uint32),
        ("mask_height", ctypes.c_uint32),
        ("mask_left", ctypes.c_double),
        ("mask_top", ctypes.c_double),
        ("mask_right", ctypes.c_double),
        ("mask_bottom", ctypes.c_double),
        ("label", ctypes.c_void_p),
        ("keypoints", ctypes.c_void_p),
        ("keypoint_layout", ctypes.c_void_p),
        ("mask", ctypes.c_void_p),
        ("class_count", ctypes.c_size_t),
    ]


class Class(ctypes.Structure):
    """NmsfilterGstClass."""

    _fields_ = [
        ("score", ctypes.c_double),
        ("label", ctypes.c_char_p),
        ("class_id", ctypes.c_int32),
        ("attribute", ctypes.c_char_p),
    ]
