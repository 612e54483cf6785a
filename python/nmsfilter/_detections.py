# SPDX-License-Identifier: MIT OR Apache-2.0
"""The detections of one image."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Generic, TypeVar

if TYPE_CHECKING:
    from ._core import Detections

Floats = TypeVar("Floats")
Integers = TypeVar("Integers")


@dataclass(frozen=True, eq=False)
class ImageDetections(Generic[Floats, Integers]):
    """The N detections of one image, the best first: found[image]. If the decoder has a frame_size, boxes, oriented boxes and
    keypoints are in pixels of the frame, and boxes are clipped to it; otherwise they are in pixels of the model's input."""

    boxes: Floats
    """[N, 4] float32: x1, y1, x2, y2."""
    scores: Floats
    """[N] float32."""
    classes: Integers
    """[N] int32."""
    anchors: Integers
    """[N] int32: the row of the model's output."""
    labels: list[str] | None = None
    """The names of the classes; None without labels of the decoder."""
    keypoints: Floats | None = None
    """[N, K, 3] float32: x, y and visibility; None for models without keypoints."""
    oriented_boxes: Floats | None = None
    """[N, 5] float32: center x, center y, width, height, angle; None for upright boxes."""
    masks: list[Integers | None] | None = None
    """Of each detection what mask() of Detections returns; None for models without masks."""
    mask_areas: Integers | None = None
    """[N, 4] int32: as in Detections."""
    columns: Floats | None = None
    """[N, C] float32: as in Detections."""

    def __len__(self) -> int:
        return len(self.scores)  # type: ignore[arg-type]


def images(found: Detections[Floats, Integers]) -> Iterator[ImageDetections[Floats, Integers]]:
    """The detections of each image."""
    return (found[image] for image in range(len(found)))
