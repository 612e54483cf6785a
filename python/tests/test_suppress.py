# SPDX-License-Identifier: MIT OR Apache-2.0
"""suppress, which merges boxes and lowers scores."""

import unittest

import numpy

import nmsfilter

# Two halves of an object, and another object.
BOXES = numpy.array([[0, 0, 60, 50], [40, 0, 90, 50], [200, 0, 250, 50]], numpy.float32)
SCORES = numpy.array([0.75, 0.875, 0.5], numpy.float32)
METHODS = [
    "greedy", "map-reduce", "none", "merge", "merge-transitive", "weighted-fusion", "weighted-average", "soft-linear",
    "soft-gaussian", "matrix-linear", "matrix-gaussian",
]


class Suppress(unittest.TestCase):
    def test_boxes_are_merged(self):
        classes = numpy.array([7, 7, -1])
        found = nmsfilter.suppress(BOXES, SCORES, classes, method="merge", overlap="smaller", iou_threshold=0.3)
        self.assertEqual(found.boxes.tolist(), [[0, 0, 90, 50], [200, 0, 250, 50]])
        self.assertEqual(found.scores.tolist(), [0.875, 0.5])
        self.assertEqual(found.classes.tolist(), [7, -1])
        self.assertEqual(found.keepers.tolist(), [1, 2])
        self.assertEqual(found.merged_into(0).tolist(), [0])
        self.assertEqual(found.merged_into(1).tolist(), [])
        types = [found.boxes.dtype, found.scores.dtype, found.classes.dtype, found.merged.dtype]
        self.assertEqual(types, [numpy.float32, numpy.float32, numpy.int64, numpy.int64])

    def test_classes_are_independent_unless_class_agnostic(self):
        options = {"method": "merge", "overlap": "smaller", "iou_threshold": 0.3}
        classes = numpy.array([0, 1, 0])
        self.assertEqual(nmsfilter.suppress(BOXES, SCORES, classes, **options).keepers.tolist(), [1, 0, 2])
        found = nmsfilter.suppress(BOXES, SCORES, classes, class_agnostic=True, **options)
        self.assertEqual((found.keepers.tolist(), found.classes.tolist()), ([1, 2], [1, 0]))
        self.assertIsNone(nmsfilter.suppress(BOXES, SCORES, **options).classes)

    def test_every_method_runs_and_no_score_rises(self):
        for method in METHODS:
            found = nmsfilter.suppress(BOXES, SCORES, method=method, overlap="smaller", iou_threshold=0.3)
            self.assertTrue((found.scores <= SCORES[found.keepers]).all(), method)
            self.assertEqual(len(found.boxes), len(found.merged_ends))
        expected = nmsfilter.nms(BOXES, SCORES, 0.3, overlap="smaller").tolist()
        found = nmsfilter.suppress(BOXES, SCORES, overlap="smaller", iou_threshold=0.3)
        self.assertEqual(found.keepers.tolist(), expected)

    def test_scores_are_lowered(self):
        boxes = numpy.array([[0, 0, 10, 10], [5, 0, 15, 10]], numpy.float32)
        scores = numpy.array([0.9, 0.6], numpy.float32)

        def lowered(**options):
            return nmsfilter.suppress(boxes, scores, iou_threshold=0.3, **options).scores.tolist()

        self.assertAlmostEqual(lowered(method="soft-linear")[1], 0.4, places=6)
        wide, narrow = (lowered(method="soft-gaussian", sigma=sigma)[1] for sigma in (1, 0.25))
        self.assertAlmostEqual(wide, 0.6 * numpy.exp(-1 / 9), places=6)
        self.assertAlmostEqual(narrow, 0.6 * numpy.exp(-4 / 9), places=6)
        self.assertEqual(len(lowered(method="soft-linear", score_threshold=0.5)), 1)

    def test_other_arguments(self):
        half = numpy.array([[0, 0, 10, 10], [5, 0, 15, 10]], numpy.float32)

        def count(**options):
            found = nmsfilter.suppress(half, SCORES[:2], method="merge", overlap="smaller", **options)
            return len(found.boxes)

        self.assertEqual(count(), 2)
        self.assertEqual(count(threshold_inclusive=True), 1)
        self.assertEqual(count(max_detections=1), 1)
        # The second box does not exceed the threshold, and is lost.
        found = nmsfilter.suppress(
            half, SCORES[:2], method="merge", overlap="smaller", threshold_inclusive=True, lose_released=True
        )
        self.assertEqual((found.boxes.tolist(), found.merged.tolist()), ([[5, 0, 15, 10]], []))

    def test_double_precision_and_no_boxes(self):
        found = nmsfilter.suppress(BOXES.astype(float), SCORES.astype(float), method="merge", iou_threshold=0.1)
        self.assertEqual(found.boxes.tolist(), [[0, 0, 90, 50], [200, 0, 250, 50]])
        found = nmsfilter.suppress(BOXES[:0], SCORES[:0], method="merge")
        self.assertEqual((found.boxes.shape, found.merged.shape), ((0, 4), (0,)))

    def test_wrong_arguments(self):
        for expected, arguments, options in [
            ("boxes: expected shape [N, 4], got [3, 2]", (BOXES[:, :2], SCORES), {}),
            ("scores: expected shape [3], got [2]", (BOXES, SCORES[:2]), {}),
            ("classes: expected shape [3], got [1]", (BOXES, SCORES, numpy.array([1])), {}),
            ("sigma: expected a finite number above 0, got 0", (BOXES, SCORES), {"sigma": 0}),
            ("iou_threshold: expected a number from 0 to 1, got 2", (BOXES, SCORES), {"iou_threshold": 2}),
            ("score_threshold: expected a number, got NaN", (BOXES, SCORES), {"score_threshold": float("nan")}),
            ('method: expected one of "greedy", ', (BOXES, SCORES), {"method": "soft"}),
        ]:
            with self.assertRaises(nmsfilter.InputError) as caught:
                nmsfilter.suppress(*arguments, **options)
            self.assertTrue(str(caught.exception).startswith(expected), caught.exception)

    def test_a_decoder_merges(self):
        outputs = {"boxes": BOXES, "scores": SCORES}
        decoder = nmsfilter.Decoder("boxes", method="merge", overlap="smaller", iou_threshold=0.3)
        found = decoder(outputs)
        self.assertEqual(found.boxes[0, : found.counts[0]].tolist(), [[0, 0, 90, 50], [200, 0, 250, 50]])


if __name__ == "__main__":
    unittest.main()
