# SPDX-License-Identifier: MIT OR Apache-2.0
"""Arrays in device memory, with the driver of a GPU or with the one that emulates it (kernels/emulate). PyTorch's are in
gpu.py."""

import itertools
import unittest

import numpy
from arrays import boxes_and_scores, needs_data
from cuda_driver import DeviceArray, Driver
from exchange import Library
from test_decode import recorded

import nmsfilter

try:
    DRIVER = Driver()
    WHY_NOT = None
except (OSError, RuntimeError, AttributeError) as error:
    WHY_NOT = str(error)


@unittest.skipIf(WHY_NOT is not None, f"there is no GPU: {WHY_NOT}")
class Device(unittest.TestCase):
    def check(self, function, *arrays):
        expected = function(*arrays).tolist()
        for stream in (None, 1, DRIVER.stream()):
            kept = function(*(DeviceArray(DRIVER, array, stream) for array in arrays))
            self.assertIsInstance(kept, nmsfilter.Array)
            self.assertEqual((kept.dtype, DRIVER.read(kept).tolist()), ("int64", expected))
            self.assertEqual(kept.__cuda_array_interface__["stream"], stream or 1)
            self.assertEqual(kept.__dlpack_device__(), (2, 0))
        stream = DRIVER.stream()
        device = [DeviceArray(DRIVER, array) for array in arrays]
        kept = function(*device, stream=stream)
        self.assertEqual((DRIVER.read(kept).tolist(), kept.__cuda_array_interface__["stream"]), (expected, stream))

    def test_nms(self):
        boxes, scores = boxes_and_scores(400, 5, crowd=0.4)
        self.check(lambda *arrays, **options: nmsfilter.nms(*arrays, 0.5, **options), boxes, scores)
        half = boxes.astype(numpy.float16)
        self.check(lambda *arrays, **options: nmsfilter.nms(*arrays, 0.3, **options), half, scores)
        self.check(
            lambda *arrays, **options: nmsfilter.nms(*arrays, 0.3, method="map-reduce", **options), boxes, scores)

    def test_nms_of_a_library_with_functions(self):
        library = Library(DRIVER)
        for stream in (None, DRIVER.stream(), DRIVER.stream()):
            library.current_stream = stream
            # Up to 1024 boxes, the GPU writes the indices to memory for all of them.
            for count in (1, 300, 1024, 1025):
                boxes, scores = boxes_and_scores(count, count, crowd=0.4)
                expected = nmsfilter.nms(boxes, scores, 0.5).tolist()
                device = library.array(boxes), library.array(scores)
                before = sum(library.in_use.values())
                kept = [nmsfilter.nms(*device, 0.5) for _ in range(2)]
                room = 2 * 8 * (count if count <= 1024 else len(expected))
                self.assertEqual(sum(library.in_use.values()) - before, room)
                for found in kept:
                    self.assertIsInstance(found, library.Array)
                    self.assertEqual((found.dtype, library.read(found).tolist()), ("int64", expected))
                del device, kept, found
                self.assertEqual(library.in_use, {})

    def test_boxes_that_only_the_host_keeps_of_a_library_with_functions(self):
        library = Library(DRIVER)
        boxes, scores = boxes_and_scores(50, 5, crowd=0.4)
        boxes[10:20, 2] = boxes[10:20, 0]
        kept = nmsfilter.nms(library.array(boxes), library.array(scores), 0.5)
        self.assertEqual(library.read(kept).tolist(), nmsfilter.nms(boxes, scores, 0.5).tolist())

    def test_boxes_without_area(self):
        boxes, scores = boxes_and_scores(50, 5, crowd=0.4)
        boxes[10:20, 2] = boxes[10:20, 0]
        self.check(lambda *arrays, **options: nmsfilter.nms(*arrays, 0.5, **options), boxes, scores)

    def test_batched_nms(self):
        boxes, scores = boxes_and_scores(300, 6, crowd=0.3)
        groups = numpy.random.default_rng(1).integers(0, 4, 300)
        for groups in (groups, groups.astype(numpy.int32), groups * 10**12):
            self.check(
                lambda *arrays, **options: nmsfilter.batched_nms(*arrays, 0.5, **options), boxes, scores, groups)

    def test_oriented_boxes(self):
        boxes, scores = boxes_and_scores(200, 6, crowd=0.3)
        boxes = numpy.hstack([boxes[:, :2], boxes[:, 2:] - boxes[:, :2], scores[:, None] * 3]).astype(numpy.float32)
        self.check(lambda *arrays, **options: nmsfilter.nms_rotated(*arrays, 0.3, **options), boxes, scores)

    def test_no_boxes(self):
        boxes, scores = numpy.zeros((0, 4), numpy.float32), numpy.zeros(0, numpy.float32)
        kept = nmsfilter.nms(DeviceArray(DRIVER, boxes), DeviceArray(DRIVER, scores), 0.5)
        self.assertEqual(kept.shape, (0,))
        self.assertEqual(kept.__dlpack_device__(), (2, 0))

    def test_other_memory_and_types_are_errors(self):
        boxes, scores = boxes_and_scores(10, 6)
        with self.assertRaises(nmsfilter.InputError) as caught:
            nmsfilter.nms(DeviceArray(DRIVER, boxes), scores, 0.5)
        self.assertEqual(
            str(caught.exception),
            "scores: expected an array on a GPU, where boxes are, got one in host memory; move it there")
        with self.assertRaises(TypeError) as caught:
            nmsfilter.nms(DeviceArray(DRIVER, boxes.astype(float)), DeviceArray(DRIVER, scores), 0.5)
        self.assertEqual(
            str(caught.exception),
            "boxes: expected float32 or float16 in device memory, got float64; convert it, to float32 by boxes.float() in "
            "PyTorch, boxes.astype('float32') in NumPy and CuPy")

    @needs_data("data/models2026")
    def test_decode(self):
        for name, decoder, options in (
            ("09_quantised_yolov8/street", "yolov8", {}),
            ("03_pose_pixels/bus", "yolov8-pose", {}),
            ("02_seg_yolov8/street", "yolov8-seg", {"masks": False}),
        ):
            with self.subTest(case=name):
                outputs, settings, _ = recorded(name)
                batch = {key: numpy.concatenate([array, array[:, :, ::-1]]) for key, array in outputs.items()}
                if "output1" in batch:
                    batch["output1"] = numpy.concatenate([outputs["output1"]] * 2)
                # The engine writes the results of one image to the arrays, and the results of several are copied.
                one = {key: array[:1] for key, array in batch.items()}
                for batch, most in itertools.product((batch, one), (100, 3, 40000)):
                    decoder_ = nmsfilter.Decoder(decoder, **settings, **options, max_detections=most)
                    expected = decoder_(batch)
                    stream = DRIVER.stream()
                    device = {key: DeviceArray(DRIVER, array, stream) for key, array in batch.items()}
                    found = decoder_(device)
                    self.assertEqual((found.engine, found.bytes_uploaded), ("cuda", None))
                    for field in ("boxes", "scores", "classes", "anchors", "counts", "columns"):
                        ours, theirs = getattr(found, field), getattr(expected, field)
                        self.assertEqual(ours is None, theirs is None, field)
                        if ours is not None:
                            numpy.testing.assert_array_equal(DRIVER.read(ours), theirs, field)
                    self.assertIsNone(found.keypoints)
                    # The next run does not change the arrays.
                    before = DRIVER.read(found.boxes)
                    decoder_({key: DeviceArray(DRIVER, array[::-1], stream) for key, array in batch.items()})
                    numpy.testing.assert_array_equal(DRIVER.read(found.boxes), before)
                    on_host = decoder_(device, results="host")
                    self.assertEqual((on_host.engine, on_host.bytes_uploaded), ("cuda", 0))
                    for field in ("boxes", "classes", "counts", "keypoints"):
                        if getattr(expected, field) is not None:
                            numpy.testing.assert_array_equal(getattr(on_host, field), getattr(expected, field))

    def test_decoder_of_a_library_with_functions(self):
        library = Library(DRIVER)
        output = numpy.random.default_rng(2).random((2, 84, 200), numpy.float32)
        output[:, :4] *= 300
        output[:, 4:] **= 100
        decoder = nmsfilter.Decoder("yolov8", max_detections=30)
        for images in (1, 2):
            expected, device = decoder(output[:images]), library.array(output[:images])
            self.assertGreater(expected.counts.min(), 5)
            for stream in (None, DRIVER.stream()):
                library.current_stream = stream
                found = decoder(device), decoder(device)
                for field in ("boxes", "scores", "classes", "anchors", "counts"):
                    for each in found:
                        numpy.testing.assert_array_equal(library.read(getattr(each, field)), getattr(expected, field))
                del found, each
            del device
        self.assertEqual(library.in_use, {})

    @needs_data("data/models2026")
    def test_masks_need_the_host(self):
        outputs, settings, rows = recorded("02_seg_yolov8/street")
        device = {key: DeviceArray(DRIVER, array) for key, array in outputs.items()}
        with self.assertRaises(nmsfilter.InputError) as caught:
            nmsfilter.decode(device, "yolov8-seg", **settings)
        self.assertEqual(
            str(caught.exception),
            "results in device memory: the memory for masks follows from the survivors; set masks to false, or pass "
            "results=\"host\"")
        found = nmsfilter.decode(device, "yolov8-seg", **settings, results="host")
        self.assertEqual(found.counts.tolist(), [len(rows)])
        expected = nmsfilter.decode(outputs, "yolov8-seg", **settings)
        numpy.testing.assert_array_equal(found.mask(0, 0), expected.mask(0, 0))


if __name__ == "__main__":
    unittest.main()
