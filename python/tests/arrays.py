# SPDX-License-Identifier: MIT OR Apache-2.0
"""What the tests share: data, libraries that may be there, objects that have one protocol only."""

import os
import pathlib
import unittest

import numpy

ROOT = pathlib.Path(__file__).resolve().parents[2]
DATA = pathlib.Path(os.environ.get("NMSFILTER_TEST_DATA", ROOT.parent / "shared"))

try:
    import torch
except ImportError:
    torch = None

needs_torch = unittest.skipIf(torch is None, "PyTorch is not installed")


def needs_data(path):
    return unittest.skipUnless((DATA / path).exists(), f"there is no {DATA / path} (NMSFILTER_TEST_DATA)")


class OnlyDlpack:
    """Has __dlpack__ alone."""

    def __init__(self, array, namespace=None, is_old=False):
        self._array, self._namespace, self._is_old = array, namespace, is_old

    def __dlpack_device__(self):
        return self._array.__dlpack_device__()

    def __dlpack__(self, **arguments):
        if self._is_old:
            if "max_version" in arguments:
                raise TypeError("unexpected keyword argument 'max_version'")
            return self._array.__dlpack__()
        return self._array.__dlpack__(**arguments)

    def __array_namespace__(self):
        if self._namespace is None:
            raise AttributeError("no namespace")
        return self._namespace


class OnlyInterface:
    """Has __array_interface__ alone."""

    def __init__(self, array):
        self._array = array

    @property
    def __array_interface__(self):
        return self._array.__array_interface__


def boxes_and_scores(count, seed, crowd=1.0):
    """Random boxes, about as many overlaps for any count; scores that differ."""
    random = numpy.random.default_rng(seed)
    corner = random.random((count, 2), numpy.float32) * numpy.float32(20 * crowd * max(count, 1) ** 0.5)
    size = random.random((count, 2), numpy.float32) * 60 + 20
    scores = random.permutation(count).astype(numpy.float32) / max(count, 1)
    return numpy.hstack([corner, corner + size]).astype(numpy.float32), scores


def greedy(boxes, scores, threshold):
    """Exact greedy suppression, as torchvision's documentation has it: a loop over boxes in the order of their scores."""
    boxes = numpy.asarray(boxes, numpy.float64)
    order = list(numpy.argsort(-numpy.asarray(scores), kind="stable"))
    area = (boxes[:, 2] - boxes[:, 0]) * (boxes[:, 3] - boxes[:, 1])
    kept = []
    while order:
        best, rest = order[0], numpy.array(order[1:], int)
        kept.append(int(best))
        upper = numpy.maximum(boxes[best, :2], boxes[rest, :2])
        lower = numpy.minimum(boxes[best, 2:], boxes[rest, 2:])
        shared = numpy.prod(numpy.clip(lower - upper, 0, None), axis=1)
        with numpy.errstate(invalid="ignore", divide="ignore"):
            overlap = shared / (area[best] + area[rest] - shared)
        order = [index for index, value in zip(rest, overlap) if not value > threshold]
    return kept
