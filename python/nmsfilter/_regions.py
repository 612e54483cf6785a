# SPDX-License-Identifier: MIT OR Apache-2.0
"""Regions as a record array of NumPy.

In: the records of nmsfilter/gst.h, with addresses in the buffer. Out: Regions, whose keypoints and masks were copied.
"""

from __future__ import annotations

import ctypes
from typing import Any

import numpy

from ._core import gather
from ._gst_types import Class, Region

#: The fields of NmsfilterGstRegion.
RECORD = numpy.dtype(Region)

_texts: dict[int, str] = {0: ""}


def _text(address: int) -> str:
    """A label, which exists until the process ends."""
    text = _texts.get(address)
    if text is None:
        text = _texts[address] = ctypes.string_at(address).decode(errors="replace")
    return text


class Regions(numpy.ndarray):
    """A record array with a record for each region: regions["score"], regions[0]["x_min"], regions[regions["score"] > 0.5].

    x_min, y_min, x_max, y_max: the edges, normalized to the frame. left, top, width, height: in pixels. score and class_id:
    NaN and -1 of regions that other elements have attached. id, parent_id. rotation, center_x, center_y, oriented_width,
    oriented_height: of an oriented box, in pixels and radians (clockwise); NaN of upright boxes. mask_left, mask_top,
    mask_right, mask_bottom: the rectangle that the mask covers, in pixels.
    """

    _keypoints: Any = None
    _layouts: Any = None
    _masks: Any = None
    #: For each region that has any: its index, and its classes.
    _classes: Any = None

    def __array_finalize__(self, other: Any) -> None:
        # A selection of records, whose fields have where its keypoints, layouts and masks are.
        self._keypoints = getattr(other, "_keypoints", None)
        self._layouts = getattr(other, "_layouts", None)
        self._masks = getattr(other, "_masks", None)
        self._classes = getattr(other, "_classes", None)

    def __getitem__(self, key: Any) -> Any:
        found = super().__getitem__(key)
        is_field = isinstance(found, Regions) and found.dtype.names is None
        return found.view(numpy.ndarray) if is_field else found

    @property
    def labels(self) -> list[str]:
        """The names of the classes."""
        return [_text(address) for address in self["label"].tolist()]

    def keypoints(self, index: int) -> numpy.ndarray | None:
        """[K, 2] or [K, 3] float32: x and y in pixels of the frame, and the visibility. None if there are none."""
        record = self[index]
        count, components = int(record["keypoint_count"]), int(record["keypoint_components"])
        if count == 0:
            return None
        first = int(record["keypoints"])
        return self._keypoints[first : first + count * components].reshape(count, components)

    def keypoint_layout(self, index: int) -> str:
        """Which points they are: "coco-17", "face-5" or "points"; "" if there are none."""
        return self._layouts[int(self[index]["keypoint_layout"])] if self._layouts else ""

    def classes(self, index: int) -> list[tuple[str, float, int]]:
        """The classes that classifiers have found: label, score and class id, best first; one classifier after the other."""
        return [found[:3] for found in self._classes_of(index)]

    def attributes(self, index: int) -> list[str]:
        """For each of classes(index): what was classified, such as the name of the model's output; "" if unknown."""
        return [found[3] for found in self._classes_of(index)]

    def _classes_of(self, index: int) -> list[tuple[str, float, int, str]]:
        return self._classes[int(self[index]["class_count"])] if self._classes else []

    def mask(self, index: int) -> numpy.ndarray | None:
        """[mask_height, mask_width] uint8, 1 where the object is. None if there is none."""
        record = self[index]
        width, height = int(record["mask_width"]), int(record["mask_height"])
        if width == 0 or height == 0:
            return None
        first, stride = int(record["mask"]), (width + 7) // 8
        rows = self._masks[first : first + stride * height].reshape(height, stride)
        return numpy.unpackbits(rows, axis=1, count=width)


def _moved(records: numpy.ndarray, field: str, lengths: numpy.ndarray, unit: int) -> bytes:
    """Copies what the addresses in a field refer to, and replaces them by indices."""
    data = gather(records[field].tolist(), (lengths * unit).tolist())
    records[field] = numpy.cumsum(lengths) - lengths
    return data


def _moved_texts(records: numpy.ndarray, field: str) -> list[str]:
    """Copies the texts at the addresses in a field, which exist as long as the buffer, and replaces them by indices."""
    texts = {"": 0}
    addresses = records[field].tolist()
    copies = [ctypes.string_at(address).decode(errors="replace") if address else "" for address in addresses]
    records[field] = [texts.setdefault(text, len(texts)) for text in copies]
    return list(texts)


def copied(records: numpy.ndarray) -> Regions:
    """The records, with a copy of what their addresses refer to."""
    found = records.view(Regions)
    points = records["keypoint_count"].astype(numpy.int64) * records["keypoint_components"]
    if points.any():
        found._keypoints = numpy.frombuffer(_moved(records, "keypoints", points, 4), numpy.float32)
        found._layouts = _moved_texts(records, "keypoint_layout")
    rows = (records["mask_width"].astype(numpy.int64) + 7) // 8 * records["mask_height"]
    if rows.any():
        found._masks = numpy.frombuffer(_moved(records, "mask", rows, 1), numpy.uint8)
    return found


_capacity = 256


def _decoded(text: bytes | None) -> str:
    return (text or b"").decode(errors="replace")


def _moved_classes(
    records: numpy.ndarray, library: Any, check: Any, address: int
) -> list[list[tuple[str, float, int, str]]]:
    """Copies the classes of the regions of a buffer, with their attributes, and replaces their numbers by indices."""
    lists: list[list[tuple[str, float, int, str]]] = [[]]
    count = ctypes.c_size_t()
    for region, number in enumerate(records["class_count"].tolist()):
        if number:
            found = (Class * number)()
            check(library.nmsfilter_gst_read_classes(address, region, found, number, ctypes.sizeof(Class), count))
            lists.append(
                [
                    (_decoded(it.label), it.score, it.class_id, _decoded(it.attribute))
                    for it in found
                ]
            )
            records["class_count"][region] = len(lists) - 1
    return lists


def read(library: Any, check: Any, address: int) -> Regions:
    """The regions of the buffer at this address."""
    global _capacity
    count = ctypes.c_size_t()
    while True:
        capacity = _capacity
        records = numpy.empty(capacity, RECORD)
        check(library.nmsfilter_gst_read_regions(address, records.ctypes.data, capacity, RECORD.itemsize, count))
        if count.value <= capacity:
            records = records[: count.value]
            classes = _moved_classes(records, library, check, address) if records["class_count"].any() else None
            found = copied(records)
            found._classes = classes
            return found
        _capacity = count.value + count.value // 2
