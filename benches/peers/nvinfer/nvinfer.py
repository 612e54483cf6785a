# SPDX-License-Identifier: MIT OR Apache-2.0
"""Python interface of nvinfer.h: calls nvinfer's suppression, which build.sh compiles."""

import ctypes

import numpy as np


class Thresholds(ctypes.Structure):
    _fields_ = [("iou", ctypes.c_float), ("postcluster", ctypes.c_float), ("topk", ctypes.c_int32)]


OBJECT = np.dtype([(name, np.float32) for name in ("left", "top", "width", "height", "score")] + [("class", np.uint32)])


class Nvinfer:
    def __init__(self, path):
        self._suppress = ctypes.CDLL(path).nvinfer_suppress
        self._suppress.restype = ctypes.c_ssize_t

    def suppress(self, corners, scores, iou, runs):
        """Suppresses boxes of one class. Returns the survivors' indices, and the time of each run in microseconds."""
        objects = np.zeros(len(corners), OBJECT)
        objects["left"], objects["top"] = corners[:, 0], corners[:, 1]
        objects["width"], objects["height"] = (corners[:, 2:] - corners[:, :2]).T
        objects["score"] = scores
        survivors, times = np.empty(len(corners), np.uint32), np.empty(runs)
        array = ctypes.c_void_p
        thresholds = Thresholds(iou, -np.inf, -1)
        count = self._suppress(
            array(objects.ctypes.data), ctypes.c_size_t(len(objects)), ctypes.byref(thresholds),
            array(survivors.ctypes.data), ctypes.c_size_t(runs), array(times.ctypes.data),
        )
        assert count >= 0, f"nvinfer.h says at most how many objects: {len(objects)} are too many"
        return survivors[:count], times
