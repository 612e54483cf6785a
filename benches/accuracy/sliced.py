# SPDX-License-Identifier: MIT OR Apache-2.0
"""Rules for the boxes of overlapping slices, and SAHI's detections with a detector of `independent`.

SAHI cuts the picture, runs the model on each slice and on the whole picture, and suppresses or merges the boxes.
"""

import contextlib
import io
import logging
from typing import NamedTuple

import numpy as np
from sahi.models.base import DetectionModel
from sahi.predict import get_sliced_prediction
from sahi.prediction import ObjectPrediction

import independent

logging.getLogger("sahi").setLevel(logging.ERROR)

SCORE_THRESHOLD = 0.25
SCORE_TOLERANCE = 0.02
# In pixels, plus this fraction of the box's longer side.
EDGE_TOLERANCE = 1.0, 0.02


class Rule(NamedTuple):
    """A rule for boxes of several slices: properties of nmsfilter, and SAHI's rule, measure and threshold, if any."""

    name: str
    properties: str
    sahi: tuple | None = None


RULES = [
    Rule("IoU 0.45", "threshold-inclusive=true", ("NMS", "IOU", 0.45)),
    Rule("smaller 0.5", "overlap=smaller iou-threshold=0.5 threshold-inclusive=true", ("NMS", "IOS", 0.5)),
    Rule(
        "merge, smaller 0.5",
        "method=merge overlap=smaller iou-threshold=0.5 threshold-inclusive=true lose-released=true",
        ("GREEDYNMM", "IOS", 0.5),
    ),
    Rule("region-edges=drop", "region-edges=drop"),
    Rule("region-edges=lower", "region-edges=lower"),
]
# SAHI's default.
MERGING = RULES[2]


class SlicedModel(DetectionModel):
    """Detects objects in a slice.

    By default, SAHI gets all candidates, and boxes end at the frame's edges, as in nmsfilter. If `by_slice` is true,
    boxes of a slice are suppressed by an IoU of 0.7 and end at the slice's edges, as in Ultralytics' program. If
    `remembers` is true, each slice runs only once until `outputs` is cleared.
    """

    def __init__(self, detector, remembers):
        self.detector, self.remembers, self.outputs, self.by_slice = detector, remembers, {}, False
        super().__init__(model=detector, confidence_threshold=SCORE_THRESHOLD)

    def set_device(self, device=None):
        """Leaves out SAHI's search for PyTorch's devices."""
        self.device = device

    def set_model(self, model):
        self.model = model

    def perform_inference(self, image):
        key = (image.shape, image.tobytes()) if self.remembers else None
        if key is None or key not in self.outputs:
            self.outputs[key] = self.detector.outputs(image)
        self._original_predictions = *self.outputs[key], image.shape[1::-1]

    def _create_object_prediction_list_from_original_predictions(self, shift_amount_list=None, full_shape_list=None):
        boxes, scores, size = self._original_predictions
        shift = np.ravel(shift_amount_list)[:2]
        height, width = np.ravel(full_shape_list)[:2]
        settings = {"score-threshold": SCORE_THRESHOLD, "iou-threshold": 0.7 if self.by_slice else 1}
        settings["max-detections"] = len(scores)
        moved, size = (np.zeros(2), size) if self.by_slice else (shift, (width, height))
        found = independent.select(boxes + np.tile(moved, 2), scores, size, settings)
        shape, shift = [int(height), int(width)], (shift - moved).astype(int).tolist()
        self._object_prediction_list_per_image = [
            [
                ObjectPrediction(box, int(number), str(int(number)), None, score, shift, shape)
                for number, *box, score in found.tolist()
                if box[0] < box[2] and box[1] < box[3]
            ]
        ]


def predict(model, pixels, slices, rule):
    """Returns SAHI's detections in a picture as rows of class, left, top, right, bottom, score, and SAHI's times.

    `slices` has the width, the height and the overlap of slices.
    """
    kind, measure, threshold = rule.sahi
    with contextlib.redirect_stderr(io.StringIO()):
        result = get_sliced_prediction(
            pixels, model, slice_width=slices[0], slice_height=slices[1], overlap_width_ratio=slices[2],
            overlap_height_ratio=slices[2], postprocess_type=kind, postprocess_match_metric=measure,
            postprocess_match_threshold=threshold, verbose=0, force_postprocess_type=True,
        )
    rows = [[one.category.id, *one.bbox.to_xyxy(), one.score.value] for one in result.object_prediction_list]
    return np.array(rows, float).reshape(-1, 6), result.durations_in_seconds


def equal(these, others):
    """Returns the number of detections with an equal one in `others`. Each of `others` is used only once."""
    pixels, part = EDGE_TOLERANCE
    left, count = others, 0
    for one in these:
        side = max(one[3] - one[1], one[4] - one[2])
        near = (left[:, 0] == one[0]) & (np.abs(left[:, 5] - one[5]) <= SCORE_TOLERANCE)
        near &= np.abs(left[:, 1:5] - one[1:5]).max(axis=1, initial=0) <= pixels + part * side
        if near.any():
            left = np.delete(left, near.argmax(), axis=0)
            count += 1
    return count
