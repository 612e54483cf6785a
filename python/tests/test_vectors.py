# SPDX-License-Identifier: MIT OR Apache-2.0
"""The cases of other projects' tests (vectors in NMSFILTER_TEST_DATA), where their rules are those of nms."""

import json
import unittest

import numpy
from arrays import DATA, needs_data

import nmsfilter


def cases(file):
    return json.loads((DATA / "vectors" / file).read_text())["cases"]


def floats(numbers, width):
    return numpy.array(numbers, numpy.float32).reshape(-1, width)


def sorted_corners(boxes):
    """Corners in any order, y before x."""
    boxes = floats(boxes, 4)[:, [1, 0, 3, 2]]
    return numpy.hstack([numpy.minimum(boxes[:, :2], boxes[:, 2:]), numpy.maximum(boxes[:, :2], boxes[:, 2:])])


def of_centers(boxes):
    boxes = floats(boxes, 4)
    return numpy.hstack([boxes[:, :2] - boxes[:, 2:] / 2, boxes[:, :2] + boxes[:, 2:] / 2])


def of_sides(boxes):
    boxes = floats(boxes, 4)
    return numpy.hstack([boxes[:, :2], boxes[:, :2] + boxes[:, 2:]])


def above(boxes, scores, params, groups=None, most=0):
    """The kept boxes among those whose score exceeds the threshold."""
    scores = numpy.array(scores, numpy.float32).reshape(-1)
    threshold = params.get("score_threshold")
    candidates = numpy.arange(len(scores))
    if threshold is not None:
        candidates = numpy.flatnonzero(scores > numpy.float32(threshold))
    boxes, scores = boxes[candidates], scores[candidates]
    if groups is None:
        kept = nmsfilter.nms(boxes, scores, params["iou_threshold"], max_detections=most)
    else:
        groups = numpy.array(groups)[candidates]
        kept = nmsfilter.batched_nms(boxes, scores, groups, params["iou_threshold"], max_detections=most)
    return candidates[kept].tolist()


class Vectors(unittest.TestCase):
    def check(self, file, run, least):
        ran = 0
        for case in cases(file):
            expected = case["expected"]
            with self.subTest(case=case["name"]):
                wanted = expected.get("keep", expected.get("selected_indices"))
                found = run(case) if wanted is not None else None
                if found is None:
                    continue
                ran += 1
                if case["compare"] == "set":
                    found, wanted = sorted(found), sorted(wanted)
                self.assertEqual(found, wanted)
        self.assertGreaterEqual(ran, least)

    @needs_data("vectors/torchvision_nms_literal.json")
    def test_torchvision(self):
        self.check("torchvision_nms_literal.json", lambda case: above(floats(case["boxes"], 4), case["scores"], case["params"]), 1)

    @needs_data("vectors/opencv_dnn_nms.json")
    def test_opencv(self):
        def run(case):
            if "soft" in case["params"]:
                return None
            return above(of_sides(case["boxes"]), case["scores"], case["params"], case.get("classes"))

        self.check("opencv_dnn_nms.json", run, 2)

    @needs_data("vectors/mmcv_nms.json")
    def test_mmcv(self):
        def run(case):
            params = case["params"]
            if "soft" in params or params.get("offset", 0):
                return None
            return above(floats(case["boxes"], 4), case["scores"], params, case.get("classes"), params.get("max_num") or 0)

        self.check("mmcv_nms.json", run, 1)

    @needs_data("vectors/mmcv_nms_rotated_quadri.json")
    def test_mmcv_rotated(self):
        def run(case):
            params = case["params"]
            if params["kind"] != "rotated":
                return None
            boxes = floats(case["boxes"], 5)
            if not params["clockwise"]:
                boxes[:, 4] *= -1
            scores = numpy.array(case["scores"], numpy.float32)
            if "classes" in case:
                return nmsfilter.batched_nms_rotated(boxes, scores, numpy.array(case["classes"]), params["iou_threshold"]).tolist()
            return nmsfilter.nms_rotated(boxes, scores, params["iou_threshold"]).tolist()

        self.check("mmcv_nms_rotated_quadri.json", run, 3)

    @needs_data("vectors/tensorflow_nms_v1_v5.json")
    def test_tensorflow(self):
        def run(case):
            params, most = case["params"], case["params"]["max_output_size"]
            is_hard = not params.get("soft_nms_sigma") and not params.get("pad") and most > 0
            if not is_hard or case["compare"] != "ordered":
                return None
            return above(sorted_corners(case["boxes"]), case["scores"], params, most=most)

        self.check("tensorflow_nms_v1_v5.json", run, 15)

    @needs_data("vectors/onnx_backend_nonmaxsuppression.json")
    def test_onnx(self):
        def run(case):
            params, found = case["params"], []
            most = params["max_output_boxes_per_class"]
            if case["compare"] == "error" or most == 0:
                return None
            for image, (boxes, scores) in enumerate(zip(case["boxes"], case["scores"])):
                boxes = of_centers(boxes) if params["center_point_box"] else sorted_corners(boxes)
                for label, of_class in enumerate(scores):
                    found += [[image, label, index] for index in above(boxes, of_class, params, most=most)]
            return found

        self.check("onnx_backend_nonmaxsuppression.json", run, 8)
        self.check("onnxruntime_nonmaxsuppression.json", run, 10)


if __name__ == "__main__":
    unittest.main()
