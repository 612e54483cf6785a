# SPDX-License-Identifier: MIT OR Apache-2.0
"""nms, batched_nms and those of oriented boxes: torchvision's tests, written anew from their description, for NumPy, for
PyTorch where it is installed, and for objects with one protocol only."""

import gc
import threading
import unittest
import weakref

import numpy
from arrays import OnlyDlpack, OnlyInterface, boxes_and_scores, greedy, needs_torch, torch

import nmsfilter


def with_overlap(count, threshold, seed):
    """Random boxes of which the first and the last overlap by little more than the threshold."""
    random = numpy.random.default_rng(seed)
    boxes = (random.random((count, 4)) * 100).astype(numpy.float32)
    boxes[:, 2:] += boxes[:, :2]
    boxes[-1] = boxes[0]
    x1, x2 = boxes[-1, 0], boxes[-1, 2]
    above = threshold + 1e-5
    boxes[-1, 2] += (x2 - x1) * (1 - above) / above
    return boxes, random.random(count).astype(numpy.float32)


class TorchvisionsTests(unittest.TestCase):
    """The cases of TestNMS in torchvision's test_ops.py."""

    def libraries(self):
        yield "numpy", numpy.asarray, numpy.asarray
        if torch is not None:
            yield "torch", torch.from_numpy, lambda tensor: tensor.numpy()

    def test_reference(self):
        for name, of_numpy, to_numpy in self.libraries():
            for threshold in (0.2, 0.5, 0.8):
                for seed in range(10):
                    with self.subTest(library=name, threshold=threshold, seed=seed):
                        boxes, scores = with_overlap(1000, threshold, seed)
                        kept = nmsfilter.nms(of_numpy(boxes), of_numpy(scores), threshold)
                        self.assertEqual(to_numpy(kept).tolist(), greedy(boxes, scores, threshold))
                        self.assertEqual(to_numpy(kept).dtype, numpy.int64)

    def test_input_errors(self):
        for name, of_numpy, _ in self.libraries():
            def random(*shape):
                return of_numpy(numpy.random.default_rng(0).random(shape).astype(numpy.float32))

            for boxes, scores in [
                (random(4), random(4)),
                (random(3, 5), random(3)),
                (random(3, 4), random(3, 2)),
                (random(3, 4), random(4)),
            ]:
                with self.subTest(library=name, boxes=tuple(boxes.shape), scores=tuple(scores.shape)):
                    with self.assertRaises(RuntimeError):
                        nmsfilter.nms(boxes, scores, 0.5)
                    with self.assertRaises(ValueError):
                        nmsfilter.nms(boxes, scores, 0.5)

    def test_float16(self):
        boxes = numpy.array(
            [[285.3538, 185.5758, 1193.5110, 851.4551], [285.1472, 188.7374, 1192.4984, 851.0669],
             [279.2440, 197.9812, 1189.4746, 849.2019]], numpy.float32)
        scores = numpy.array([0.6370, 0.7569, 0.3966], numpy.float32)
        for name, of_numpy, to_numpy in self.libraries():
            single = nmsfilter.nms(of_numpy(boxes), of_numpy(scores), 0.2)
            half = nmsfilter.nms(
                of_numpy(boxes.astype(numpy.float16)), of_numpy(scores.astype(numpy.float16)), 0.2)
            self.assertEqual(to_numpy(single).tolist(), [1], name)
            self.assertEqual(to_numpy(half).tolist(), [1], name)

    def test_batched(self):
        """One call for all groups keeps what a call for each group keeps."""
        for name, of_numpy, to_numpy in self.libraries():
            for seed in range(10):
                random = numpy.random.default_rng(seed)
                boxes = numpy.hstack([random.random((1000, 2)), random.random((1000, 2)) + 10])
                boxes, scores = boxes.astype(numpy.float32), random.permutation(1000).astype(numpy.float32)
                groups = random.integers(0, 4, 1000)
                kept = to_numpy(
                    nmsfilter.batched_nms(of_numpy(boxes), of_numpy(scores), of_numpy(groups), 0.9))
                expected = []
                for group in range(4):
                    members = numpy.flatnonzero(groups == group)
                    expected += members[greedy(boxes[members], scores[members], 0.9)].tolist()
                expected.sort(key=lambda index: -scores[index])
                self.assertEqual(kept.tolist(), expected, f"{name} {seed}")
            empty = of_numpy(numpy.zeros((0, 4), numpy.float32))
            none = of_numpy(numpy.zeros(0, numpy.float32))
            kept = to_numpy(nmsfilter.batched_nms(empty, none, of_numpy(numpy.zeros(0, numpy.int64)), 0.9))
            self.assertEqual((kept.shape, kept.dtype), ((0,), numpy.int64))

    @needs_torch
    def test_beside_torchvision(self):
        try:
            import torchvision
        except ImportError:
            self.skipTest("torchvision is not installed")
        for count in (1, 2, 10, 100, 999):
            for threshold in (0.1, 0.5, 0.7, 1.0):
                boxes, scores = map(torch.from_numpy, boxes_and_scores(count, count, crowd=0.4))
                groups = torch.from_numpy(numpy.random.default_rng(1).integers(0, 3, count))
                expected = torchvision.ops.nms(boxes, scores, threshold)
                self.assertTrue(torch.equal(nmsfilter.nms(boxes, scores, threshold), expected))
                expected = torchvision.ops.batched_nms(boxes, scores, groups, threshold)
                found = nmsfilter.batched_nms(boxes, scores, groups, threshold)
                self.assertTrue(torch.equal(found, expected))


class Inputs(unittest.TestCase):
    def setUp(self):
        self.boxes, self.scores = boxes_and_scores(300, 7, crowd=0.4)
        self.expected = greedy(self.boxes, self.scores, 0.5)
        self.assertLess(len(self.expected), 200)

    def check(self, boxes, scores, kind=numpy.ndarray):
        kept = nmsfilter.nms(boxes, scores, 0.5)
        self.assertIsInstance(kept, kind)
        self.assertEqual(numpy.asarray(kept).tolist(), self.expected)
        self.assertEqual(numpy.asarray(kept).dtype, numpy.int64)

    def test_views_with_strides_are_read(self):
        rows = numpy.hstack([self.boxes, self.scores[:, None], self.scores[:, None]])
        self.check(rows[:, :4], rows[:, 4])
        self.check(numpy.asfortranarray(self.boxes), self.scores)
        self.check(self.boxes[::-1][::-1], self.scores[::-1][::-1])
        unaligned = numpy.frombuffer(b"x" + self.boxes.tobytes(), numpy.uint8)[1:].view("<f4").reshape(-1, 4)
        self.assertFalse(unaligned.flags.aligned)
        self.check(unaligned, self.scores)

    def test_float64_is_rounded(self):
        self.check(self.boxes.astype(float), self.scores.astype(float))

    def test_other_byte_orders_are_errors(self):
        with self.assertRaisesRegex(TypeError, "native byte order, got >f4"):
            nmsfilter.nms(self.boxes.astype(">f4"), self.scores, 0.5)

    def test_objects_with_dlpack(self):
        for is_old in (False, True):
            boxes, scores = (OnlyDlpack(array, is_old=is_old) for array in (self.boxes, self.scores))
            self.check(boxes, scores, nmsfilter.Array)
            boxes = OnlyDlpack(self.boxes, numpy, is_old)
            self.check(boxes, scores)

    def test_objects_with_the_array_interface(self):
        self.check(OnlyInterface(self.boxes), OnlyInterface(self.scores), nmsfilter.Array)

    def test_results_are_passed_in_again(self):
        groups = numpy.zeros(300, numpy.int64)
        kept = nmsfilter.batched_nms(OnlyDlpack(self.boxes), OnlyDlpack(self.scores), OnlyDlpack(groups), 0.5)
        self.assertIsInstance(kept, nmsfilter.Array)
        self.assertEqual((kept.shape, kept.dtype, kept.ndim, len(kept)), ((len(kept),), "int64", 1, len(kept)))
        again = nmsfilter.batched_nms(
            self.boxes[: len(kept)], self.scores[: len(kept)], kept, 0.5)
        self.assertEqual(again.tolist(), numpy.argsort(-self.scores[: len(kept)]).tolist())
        self.assertEqual(numpy.from_dlpack(kept).tolist(), self.expected)
        self.assertIsNone(getattr(kept, "__cuda_array_interface__", None))

    def test_memory_of_results_lives_as_long_as_its_arrays(self):
        kept = nmsfilter.nms(OnlyDlpack(self.boxes), OnlyDlpack(self.scores), 0.5)
        views = [numpy.asarray(kept), numpy.from_dlpack(kept)]
        del kept
        gc.collect()
        for view in views:
            self.assertEqual(view.tolist(), self.expected)
        # A capsule that nobody takes frees its tensor, and nothing twice.
        for _ in range(100):
            array = nmsfilter.nms(OnlyDlpack(self.boxes), OnlyDlpack(self.scores), 0.5)
            array.__dlpack__()
            array.__dlpack__(max_version=(1, 0))

    def test_inputs_are_not_held(self):
        class Boxes(numpy.ndarray):
            pass

        boxes = self.boxes.view(Boxes)
        known = weakref.ref(boxes)
        nmsfilter.nms(boxes, self.scores, 0.5)
        del boxes
        gc.collect()
        self.assertIsNone(known())

    @needs_torch
    def test_pytorch(self):
        boxes, scores = torch.from_numpy(self.boxes), torch.from_numpy(self.scores)
        self.check(boxes, scores, torch.Tensor)
        self.check(torch.nn.Parameter(boxes), scores, torch.Tensor)
        self.check(torch.cat([boxes, boxes], 1)[:, 2:6].roll(2, 1), scores, torch.Tensor)
        self.check(boxes.double(), scores.double(), torch.Tensor)
        bfloat = boxes.bfloat16()
        kept = nmsfilter.nms(bfloat, scores, 0.5)
        self.assertEqual(kept.tolist(), greedy(bfloat.double().numpy(), scores.numpy(), 0.5))
        kept += 1  # It is the caller's own memory.

    def test_groups_of_any_integers(self):
        random = numpy.random.default_rng(3)
        groups = random.integers(0, 5, 300)
        expected = nmsfilter.batched_nms(self.boxes, self.scores, groups, 0.5).tolist()
        self.assertNotEqual(expected, self.expected)
        for other in (
            groups.astype(numpy.int32), groups.astype(numpy.uint8), groups.astype(numpy.int16),
            groups.astype(numpy.uint64), groups.astype(numpy.float32), groups.astype(numpy.float64),
            groups * 10**15 - 7, -groups,
        ):
            kept = nmsfilter.batched_nms(self.boxes, self.scores, other, 0.5)
            self.assertEqual(kept.tolist(), expected, other.dtype)

    def test_threads_have_engines_of_their_own(self):
        results, failures = [], []

        def work(seed):
            try:
                for count in (10, 700, 100, 2000):
                    boxes, scores = boxes_and_scores(count, seed, crowd=0.5)
                    results.append(nmsfilter.nms(boxes, scores, 0.5).tolist() == greedy(boxes, scores, 0.5))
            except BaseException as error:
                failures.append(error)

        threads = [threading.Thread(target=work, args=(seed,)) for seed in range(8)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        self.assertEqual(failures, [])
        self.assertEqual(results, [True] * 32)


class Rules(unittest.TestCase):
    def test_boxes_without_area_are_kept(self):
        boxes = numpy.array([[0, 0, 10, 10], [5, 5, 5, 5], [0, 0, 10, 10], [5, 5, 5, 9]], numpy.float32)
        scores = numpy.array([0.5, 0.9, 0.4, 0.3], numpy.float32)
        self.assertEqual(nmsfilter.nms(boxes, scores, 0.5).tolist(), [1, 0, 3])

    def test_equal_scores_keep_the_order_of_the_boxes(self):
        boxes = numpy.array([[0, 0, 1, 1], [0, 0, 1, 1], [5, 5, 6, 6]], numpy.float32)
        self.assertEqual(nmsfilter.nms(boxes, numpy.ones(3, numpy.float32), 0.5).tolist(), [0, 2])

    def test_methods_and_measures(self):
        # The second box is suppressed by the first, and overlaps the third.
        boxes = numpy.array([[0, 0, 10, 1], [4, 0, 14, 1], [8, 0, 18, 1], [1, 0, 4, 1]], numpy.float32)
        scores = numpy.array([0.9, 0.8, 0.7, 0.6], numpy.float32)

        def kept(**options):
            return nmsfilter.nms(boxes, scores, 0.4, **options).tolist()

        self.assertEqual(kept(), [0, 2, 3])
        self.assertEqual(kept(method="greedy", overlap="iou"), [0, 2, 3])
        self.assertEqual(kept(method="map-reduce"), [0, 3])
        self.assertEqual(kept(overlap="smaller"), [0, 2])
        self.assertEqual(kept(max_detections=2), [0, 2])

    def test_oriented_boxes(self):
        # Two crossed boxes overlap by a ninth; their bounds are the same.
        boxes = numpy.array([[50, 50, 30, 10, numpy.pi / 4], [50, 50, 30, 10, -numpy.pi / 4],
                             [51, 50, 30, 10, numpy.pi / 4]], numpy.float32)
        scores = numpy.array([0.9, 0.8, 0.7], numpy.float32)
        self.assertEqual(nmsfilter.nms_rotated(boxes, scores, 0.5).tolist(), [0, 1])
        self.assertEqual(nmsfilter.nms_rotated(boxes, scores, 0.1).tolist(), [0])
        self.assertEqual(nmsfilter.nms_rotated(boxes, scores, 0.5, overlap="prob-iou").tolist(), [0, 1])
        groups = numpy.array([0, 0, 1])
        self.assertEqual(nmsfilter.batched_nms_rotated(boxes, scores, groups, 0.5).tolist(), [0, 1, 2])
        # Clockwise where y is down: along the line y = x.
        along = numpy.array([[0, 0, 100, 2, numpy.pi / 4], [30, 30, 4, 4, 0], [30, -30, 4, 4, 0]], numpy.float32)
        kept = nmsfilter.nms_rotated(along, scores, 0.4, overlap="smaller")
        self.assertEqual(kept.tolist(), [0, 2])


if __name__ == "__main__":
    unittest.main()
