# SPDX-License-Identifier: MIT OR Apache-2.0
"""suppress, which merges boxes and lowers scores."""

from __future__ import annotations

from typing import Any, NamedTuple

from . import _core


class MergedBoxes(NamedTuple):
    """The boxes that remain, best first. All arrays but merged have one element per box."""

    boxes: Any
    """[M, 4], float32: left, upper, right, lower edge."""
    scores: Any
    """[M], float32: the final scores."""
    classes: Any | None
    """[M], int64: the classes; None if none were passed."""
    keepers: Any
    """[M], int64: the index of the box from which the class is."""
    merged: Any
    """int64: the indices of the boxes that were merged into the keepers, one list after the other."""
    merged_ends: Any
    """[M], int64: the end of each box's list in merged."""

    def merged_into(self, index: int) -> Any:
        """The indices of the boxes that were merged into the keeper of this box."""
        return self.merged[self.merged_ends[index - 1] if index > 0 else 0 : self.merged_ends[index]]


def suppress(
    boxes: Any,
    scores: Any,
    classes: Any | None = None,
    *,
    method: str = "greedy",
    overlap: str = "iou",
    iou_threshold: float = 0.5,
    score_threshold: float | None = None,
    threshold_inclusive: bool = False,
    sigma: float = 0.5,
    class_agnostic: bool = False,
    lose_released: bool = False,
    max_detections: int = 0,
    densities: Any | None = None,
    embeddings: Any | None = None,
    embedding_distance: float = 1.0,
    embedding_iou_threshold: float = 0.9,
) -> MergedBoxes:
    """Suppresses, merges or rescores boxes in host memory, on the CPU.

    boxes: [N, 4] of x1, y1, x2, y2; scores: [N]; classes: None, or [N] whole numbers: boxes of different classes are
    independent, unless class_agnostic is set. Boxes without area remain unchanged.

    method: "greedy", "map-reduce" or "none", which keep boxes and scores; "merge" (SAHI's GREEDYNMM), "merge-transitive"
    (SAHI's NMM, but boxes join by score instead of index), "weighted-fusion" (Weighted Boxes Fusion) or "weighted-average"
    (MediaPipe; ensemble_boxes' non-maximum weighted weights by score times IoU instead of score), which merge boxes; "soft-linear" or "soft-gaussian" (Soft-NMS), "matrix-linear" or "matrix-gaussian" (Matrix NMS), which lower scores;
    "adaptive" (Adaptive-NMS) with densities [N], or "feature" (FeatureNMS) with embeddings [N, E], which keep more boxes than
    "greedy".
    overlap: "iou", "smaller" (SAHI's IOS), "representative" or "diou". iou_threshold: the overlap above which boxes
    conflict, 0 to 1; threshold_inclusive: an overlap equal to it is a conflict, too. score_threshold: boxes below it are left
    out, before and after scores are lowered. sigma: the width of Gaussian functions, above 0. lose_released: "merge" and
    "merge-transitive" lose boxes that do not overlap the grown box, as SAHI does. max_detections: the greatest number of
    boxes; 0 for all. densities: the threshold of a box is at least the density of the better box. Boxes whose embeddings are
    more than embedding_distance apart do not conflict, unless their overlap exceeds embedding_iou_threshold.
    """
    return MergedBoxes(
        *_core.suppress(
            boxes,
            scores,
            classes,
            method=method,
            overlap=overlap,
            iou_threshold=iou_threshold,
            score_threshold=score_threshold,
            threshold_inclusive=threshold_inclusive,
            sigma=sigma,
            class_agnostic=class_agnostic,
            lose_released=lose_released,
            max_detections=max_detections,
            densities=densities,
            embeddings=embeddings,
            embedding_distance=embedding_distance,
            embedding_iou_threshold=embedding_iou_threshold,
        )
    )
