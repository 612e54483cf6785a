# SPDX-License-Identifier: MIT OR Apache-2.0
"""A detector of `independent` as a model of SAHI, and SAHI's detections with it.

SAHI cuts the picture, runs the model on each slice and on the whole picture, and suppresses or merges the boxes.
"""

import contextlib
import io
import logging

import numpy as np
from sahi.models.base import DetectionModel
from sahi.predict import get_sliced_prediction
from sahi.prediction import ObjectPrediction

import independent

logging.getLogger("sahi").setLevel(logging.ERROR)


class SlicedModel(DetectionModel):
    """Detects objects in a slice.

    `settings` are the settings of `independent.select` with which the model suppresses boxes within a slice. With
    iou-threshold=1, SAHI gets all candidates. A slice's boxes end at its edges if `clips` is true, as in Ultralytics'
    program, otherwise at the frame's edges, as in nmsfilter. Outputs are kept, so that each slice of the last picture is
    run only once.
    """

    def __init__(self, detector, threshold):
        self.detector, self.outputs = detector, {}
        self.settings, self.clips = {}, True
        super().__init__(model_path="", model=detector, confidence_threshold=threshold, device="cpu")

    def set_device(self, device=None):
        """Leaves out SAHI's search for PyTorch's devices."""
        self.device = device

    def set_model(self, model):
        self.model = model

    def perform_inference(self, image):
        key = image.shape, image.tobytes()
        if key not in self.outputs:
            self.outputs[key] = self.detector.outputs(image)
        self._original_predictions = *self.outputs[key], image.shape[1::-1]

    def _create_object_prediction_list_from_original_predictions(self, shift_amount_list=None, full_shape_list=None):
        boxes, scores, size = self._original_predictions
        shift = np.ravel(shift_amount_list)[:2]
        height, width = np.ravel(full_shape_list)[:2]
        origin, frame = (np.zeros(2), size) if self.clips else (shift, (width, height))
        found = independent.select(boxes + np.tile(origin, 2), scores, frame, self.settings)
        predictions = []
        for number, *box, score in found.tolist():
            if box[0] < box[2] and box[1] < box[3]:
                amount = (shift - origin).astype(int).tolist()
                predictions.append(
                    ObjectPrediction(box, int(number), str(int(number)), None, score, amount, [int(height), int(width)])
                )
        self._object_prediction_list_per_image = [predictions]


def detections(model, pixels, slices, rule):
    """Returns SAHI's detections in a picture as rows of class, left, top, right, bottom, score.

    `slices` has the width, the height and the overlap of slices. `rule` has the name of SAHI's rule, the measure and the
    threshold.
    """
    width, height, overlap = slices
    kind, measure, threshold = rule
    with contextlib.redirect_stderr(io.StringIO()):
        result = get_sliced_prediction(
            pixels, model, slice_width=width, slice_height=height, overlap_width_ratio=overlap,
            overlap_height_ratio=overlap, postprocess_type=kind, postprocess_match_metric=measure,
            postprocess_match_threshold=threshold, verbose=0, force_postprocess_type=True,
        )
    rows = [[one.category.id, *one.bbox.to_xyxy(), one.score.value] for one in result.object_prediction_list]
    return np.array(rows, float).reshape(-1, 6)
