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

    def test_densities_and_embeddings_decide(self):
        # The intersection is 0.6 of the union.
        boxes = numpy.array([[0, 0, 40, 10], [10, 0, 50, 10]], numpy.float32)
        scores = numpy.array([0.9, 0.8], numpy.float32)

        def keepers(**options):
            return nmsfilter.suppress(boxes, scores, **options).keepers.tolist()

        self.assertEqual(keepers(method="adaptive", densities=numpy.array([0.7, 0])), [0, 1])
        self.assertEqual(keepers(method="adaptive", densities=numpy.array([0.5, 0.7])), [0])
        options = {"method": "feature", "embeddings": numpy.array([[0, 0], [3, 4]], numpy.float32), "iou_threshold": 0.1}
        self.assertEqual(keepers(**options), [0, 1])
        self.assertEqual(keepers(**options, embedding_distance=5), [0])
        self.assertEqual(keepers(**options, embedding_iou_threshold=0.5), [0])
        for expected, options in [
            ("densities: expected shape [2], got [1]", {"method": "adaptive", "densities": numpy.array([0.5])}),
            ("embeddings: expected shape [2, N], got [2]", {"method": "feature", "embeddings": scores}),
            ("expected densities [2] of type f32 or f16 for the method adaptive, got none", {"method": "adaptive"}),
            ("expected no densities and no embeddings for the method greedy, got ", {"densities": scores}),
            ("embeddings: expected none beside densities", {"densities": scores, "embeddings": boxes}),
            ("embedding_distance: expected a finite number of at least 0, got -1", {"embedding_distance": -1}),
            ("embedding_iou_threshold: expected a number from 0 to 1, got 2", {"embedding_iou_threshold": 2}),
        ]:
            with self.assertRaises(nmsfilter.InputError) as caught:
                keepers(**options)
            self.assertTrue(str(caught.exception).startswith(expected), caught.exception)

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

    def test_a_decoder_reads_a_column_of_its_layout(self):
        layout = (
            "name = crowd\n[tensor rows]\nshape = N,6\n[score]\nscores = rows 4\n[box]\nbox = rows\n"
            "[column density]\nnumbers = rows 5\ncount = 1\nkind = density\n"
        )
        rows = numpy.array([[[0, 0, 40, 10, 0.9, 0.7], [10, 0, 50, 10, 0.8, 0]]], numpy.float32)
        for method, count in [("greedy", 1), ("adaptive", 2)]:
            found = nmsfilter.Decoder(layout=layout, method=method)({"rows": rows})
            self.assertEqual(found.counts.tolist(), [count], method)

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
