# SPDX-License-Identifier: MIT OR Apache-2.0
"""Programs for type checkers, which run.sh runs strictly: a comment that ignores no error is an error."""

from collections.abc import Sequence

import numpy
from numpy import float32, int32, int64
from numpy.typing import NDArray
from typing_extensions import assert_type

import nmsfilter


class Tensor:
    """An array of another library."""


boxes, scores = numpy.zeros((3, 4), float32), numpy.zeros(3, float32)
kept = nmsfilter.nms(boxes, scores, 0.5, method="map-reduce")
assert_type(kept, NDArray[int64])
print(boxes[kept], boxes[nmsfilter.batched_nms(boxes, scores, kept, 0.5)])
assert_type(nmsfilter.nms_rotated(Tensor(), Tensor(), 0.5), Tensor)

merged = nmsfilter.suppress(boxes, scores, method="merge")
assert_type((merged.boxes, merged.classes, merged.merged_into(0)), tuple[NDArray[float32], None, NDArray[int64]])
assert_type(nmsfilter.suppress(boxes, scores, kept).classes, NDArray[int64])

decoder = nmsfilter.Decoder("yolov8", frame_size=(640, 640), letterbox="center", labels=["person"])
for outputs in (boxes, [boxes], {"output0": boxes}):
    assert_type(nmsfilter.decode(outputs, "yolov8", score_threshold=0.3, results="host").counts, NDArray[int32])
assert_type(nmsfilter.decode(Tensor()).boxes, Tensor)
assert_type(nmsfilter.decode([Tensor()]).boxes, Tensor)
for image in decoder({"output0": Tensor()}, regions=nmsfilter.slices((640, 640), (320, 320))):
    assert_type(image.classes, Tensor)
    assert_type(image.labels, list[str] | None)
names: Sequence[str] = nmsfilter.decoders()

nmsfilter.decode(boxes, "yolov8", conf=0.3)  # type: ignore[call-overload]  # pyright: ignore[reportCallIssue]
nmsfilter.Decoder(overlap="ios")  # type: ignore[arg-type]  # pyright: ignore[reportArgumentType]
nmsfilter.Decoder(max_detection=3)  # type: ignore[call-arg]  # pyright: ignore[reportCallIssue]
nmsfilter.nms(boxes, scores, 0.5, method="merge")  # type: ignore[call-overload]  # pyright: ignore
nmsfilter.suppress(boxes, scores, method="greed")  # type: ignore[call-overload]  # pyright: ignore
