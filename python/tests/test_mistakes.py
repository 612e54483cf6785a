# SPDX-License-Identifier: MIT OR Apache-2.0
"""Mistakes of a Python user, with the whole message of each."""

import unittest

import numpy
from arrays import needs_torch, torch

import nmsfilter

if torch is not None:
    from torch._subclasses.fake_tensor import FakeTensorMode


def floats(*shape):
    return numpy.zeros(shape, numpy.float32)


class Mistakes(unittest.TestCase):
    maxDiff = None

    def expect(self, error, message, function, *arguments, **settings):
        with self.assertRaises(error) as caught:
            function(*arguments, **settings)
        self.assertEqual(str(caught.exception), message)

    def test_01_lists_in_place_of_arrays(self):
        self.expect(
            TypeError,
            "boxes: expected an array (of NumPy, PyTorch, CuPy, JAX, or any object with __dlpack__, "
            "__cuda_array_interface__ or __array_interface__), got list; numpy.asarray(boxes, "
            "dtype=numpy.float32) makes one of numbers",
            nmsfilter.nms, [[0, 0, 1, 1]], [0.5], 0.5)

    def test_02_integer_boxes(self):
        self.expect(
            TypeError,
            "boxes: expected float32 or float16, got int64; convert it, to float32 by boxes.float() in PyTorch, "
            "boxes.astype('float32') in NumPy and CuPy",
            nmsfilter.nms, numpy.zeros((3, 4), numpy.int64), floats(3), 0.5)

    def test_03_detections_of_six_columns_as_boxes(self):
        self.expect(
            nmsfilter.InputError,
            "boxes: expected shape [N, 4] (x1, y1, x2, y2), got [8, 6]",
            nmsfilter.nms, floats(8, 6), floats(8), 0.5)

    def test_04_the_batch_dimension_is_left(self):
        self.expect(
            nmsfilter.InputError,
            "boxes: expected shape [N, 4] (x1, y1, x2, y2), got [1, 8, 4]; pass the boxes of one image, boxes[0]",
            nmsfilter.nms, floats(1, 8, 4), floats(8), 0.5)

    def test_05_the_scores_of_all_classes(self):
        self.expect(
            nmsfilter.InputError,
            "scores: expected shape [8], one for each of the 8 boxes, got [8, 80]; of the scores of classes, pass the "
            "greatest (scores.max), and the classes as idxs of batched_nms",
            nmsfilter.nms, floats(8, 4), floats(8, 80), 0.5)

    def test_06_a_threshold_in_percent(self):
        self.expect(
            nmsfilter.InputError,
            "iou_threshold: expected a number from 0 to 1, got 45",
            nmsfilter.nms, floats(8, 4), floats(8), 45)

    def test_07_a_score_that_is_no_number(self):
        boxes = numpy.array([[0, 0, 1, 1], [0, 0, 2, 2]], numpy.float32)
        self.expect(
            nmsfilter.InputError,
            "expected scores that are numbers, got NaN as the score of box 1",
            nmsfilter.nms, boxes, numpy.array([0.5, numpy.nan], numpy.float32), 0.5)

    def test_08_oriented_boxes_for_nms(self):
        self.expect(
            nmsfilter.InputError,
            "boxes: expected shape [N, 4] (x1, y1, x2, y2), got [8, 5]; nms_rotated takes boxes of 5 numbers",
            nmsfilter.nms, floats(8, 5), floats(8), 0.5)

    def test_09_a_decoder_that_does_not_exist(self):
        self.expect(
            nmsfilter.InputError,
            "decoder: there is no decoder yolo11; expected one of " + ", ".join(nmsfilter.decoders()),
            nmsfilter.decode, floats(1, 84, 8400), "yolo11")

    def test_10_outputs_that_several_decoders_read(self):
        self.expect(
            nmsfilter.InputError,
            "the tensors (output0 (f32 1x56x8400)) can be read as yolov8-pose with 1 class or yolov8 with 52 classes or "
            "yolov8-obb with 51 classes; set decoder to the right one; if it is none of these, describe the tensors in a "
            "layout file",
            nmsfilter.decode, floats(1, 56, 8400))

    def test_11_a_model_without_the_size_of_its_input(self):
        self.expect(
            nmsfilter.InputError,
            "tensor output0 (f32 1x8400x85): decoder yolox-raw needs the size of the model's input; set model_size",
            nmsfilter.decode, floats(1, 8400, 85), "yolox-raw")

    def test_12_quantized_outputs_without_their_scale(self):
        self.expect(
            nmsfilter.InputError,
            "tensor output0 (i8 1x84x8400): its elements are quantized, but their scale and zero point are not known; "
            "set quantization",
            nmsfilter.decode, numpy.zeros((1, 84, 8400), numpy.int8), "yolov8")

    def test_13_a_measure_of_other_boxes(self):
        message = 'overlap: "{}" is not defined for {} boxes; choose "iou"'
        upright, oriented = message.format("prob-iou", "upright"), message.format("diou", "oriented")
        error, boxes, scores = nmsfilter.InputError, floats(8, 4), floats(8)
        self.expect(error, upright, nmsfilter.nms, boxes, scores, 0.5, overlap="prob-iou")
        self.expect(error, upright, nmsfilter.batched_nms, boxes, scores, scores, 0.5, overlap="prob-iou")
        self.expect(error, upright, nmsfilter.Decoder("yolov8", overlap="prob-iou"), floats(1, 84, 8))
        self.expect(error, oriented, nmsfilter.nms_rotated, floats(8, 5), scores, 0.5, overlap="diou")

    def test_14_thresholds_that_cannot_work(self):
        def expect(message, threshold, error=nmsfilter.InputError):
            self.expect(error, f"score_threshold{message}", nmsfilter.Decoder, score_threshold=threshold)

        nan, infinity = float("nan"), float("inf")
        expect(": expected a number, got NaN", nan)
        expect("[1]: expected a number, got NaN", [0.5, nan])
        expect(": expected a number for each class, got none", [])
        nothing = ": expected a number for at least one class, got infinity for all, which excludes every class"
        expect(nothing, infinity)
        expect(nothing, [infinity, infinity])
        kinds = ": expected a number, or a list with a number for each class, got "
        expect(f"{kinds}str", "0.5", TypeError)
        expect(f"{kinds}dict", {0: 0.5}, TypeError)
        expect("[0]: expected a number, got str", ["a"], TypeError)
        expect("[1]: expected a number, got NoneType", [0.5, None], TypeError)
        for threshold in (1, numpy.float32(0.5), numpy.array(0.5), numpy.array([0.5]), (0.5, infinity)):
            nmsfilter.Decoder(score_threshold=threshold)
        message = "iou_threshold: expected a number, got str"
        self.expect(TypeError, message, nmsfilter.nms, floats(8, 4), floats(8), "0.5")
        self.expect(TypeError, message, nmsfilter.Decoder, iou_threshold="0.5")

    def test_15_numbers_that_are_no_counts(self):
        whole = "expected a whole number from 0 to 2^64 - 1, got"
        error = nmsfilter.InputError
        for name in ("max_detections", "max_candidates", "num_classes"):
            self.expect(error, f"{name}: {whole} -1", nmsfilter.Decoder, **{name: -1})
            self.expect(error, f"{name}: {whole} {2**64}", nmsfilter.Decoder, **{name: 2**64})
            self.expect(TypeError, f"{name}: {whole} float", nmsfilter.Decoder, **{name: 1.5})
            nmsfilter.Decoder(**{name: numpy.int64(5)})
        self.expect(
            error, f"max_detections: {whole} -1", nmsfilter.nms, floats(8, 4), floats(8), 0.5, max_detections=-1)
        found = nmsfilter.decode(floats(1, 84, 8), "yolov8")
        self.expect(error, f"image: {whole} -1", found.mask, -1, 0)
        self.expect(error, f"detection: {whole} -1", found.mask, 0, -1)
        for many in (2**44, 2**62):
            with self.assertRaisesRegex(MemoryError, "^max_detections: an array of .* exceeds memory"):
                nmsfilter.decode(floats(1, 84, 8), "yolov8", max_detections=many)

    def test_16_pairs_that_are_none(self):
        shape = "keypoint_shape: expected the number of keypoints, and 2 (x, y) or 3 (x, y, visibility), got "
        for wrong in (17, (17,), (-1, 3), (17, 4), "17"):
            self.expect(nmsfilter.InputError, shape + repr(wrong), nmsfilter.Decoder, keypoint_shape=wrong)
        size = "model_size: expected (width, height) of the model's input in pixels, got "
        for wrong in (640, (640,), "640"):
            self.expect(TypeError, size + repr(wrong), nmsfilter.Decoder, model_size=wrong)
        size = "model_size: expected width and height in pixels, each at least 1, got "
        for wrong, text in (((0, 0), "[0.0, 0.0]"), ((-640, 640), "[-640.0, 640.0]")):
            self.expect(nmsfilter.InputError, size + text, nmsfilter.Decoder, model_size=wrong)

    def test_17_a_batch_without_images(self):
        message = "tensor output0 (f32 0x84x8): expected a batch of at least one image, got none; leave out empty batches"
        self.expect(nmsfilter.InputError, message, nmsfilter.decode, floats(0, 84, 8), "yolov8")

    def test_18_arrays_that_do_not_exist(self):
        class Claimed:
            def __init__(self, shape, address):
                self.__array_interface__ = {"version": 3, "typestr": "<f4", "shape": shape, "data": (address, False)}

        error = nmsfilter.InputError
        message = "boxes: expected a shape that fits memory, got [1099511627776, 1099511627776]"
        self.expect(error, message, nmsfilter.nms, Claimed((2**40, 2**40), 16), floats(8), 0.5)
        with self.assertRaisesRegex(error, "boxes: expected an array with elements in memory, got .*Claimed .*is 0"):
            nmsfilter.nms(Claimed((8, 4), 0), floats(8), 0.5)
        with self.assertRaisesRegex(MemoryError, "exceeds memory"):
            nmsfilter.decode(numpy.broadcast_to(numpy.float64(0), (2**40, 84, 8400)), "yolov8")

    def test_19_parameters_that_cannot_work(self):
        error, decoder = nmsfilter.InputError, nmsfilter.Decoder
        for message, settings in (
            ("pixel_offset: expected 0 or 1, got 2", {"pixel_offset": 2}),
            ("pixel_offset: expected 0 or 1, got NaN", {"pixel_offset": float("nan")}),
            ('region_edges: expected one of "keep", "drop", "lower", got "cut"', {"region_edges": "cut"}),
            ("edge_margin: expected a finite number of at least 1, got 0", {"edge_margin": 0}),
            ("edge_score: expected a finite number, got NaN", {"edge_score": float("nan")}),
            ("min_size: expected numbers of at least 0, got [-1.0, -1.0]", {"min_size": -1}),
            ("max_size: expected numbers above 0, infinity for no limit, got [0.0, 8.0]", {"max_size": (0, 8)}),
            ("min_size: expected numbers of at most the greatest size, got [9.0, 9.0]", {"min_size": 9, "max_size": 8}),
            ("visible: expected a left edge before the right one and an upper edge above the lower one, got "
             "[0.0, 0.0, 0.0, 9.0]", {"visible": (0, 0, 0, 9)}),
            ('mask_size: expected one of "prototypes", "frame", got "x"', {"mask_size": "x"}),
            ("frame_size: expected the size of the frame for masks in its pixels, got none", {"mask_size": "frame"}),
            ("frame_size: the frame is 0x64; expected at least one pixel", {"frame_size": (0, 64)}),
            ("frame_size: expected sides from 1 to 65536, got [65537, 64]", {"frame_size": (65537, 64)}),
            ('letterbox: expected one of "none", "center", "top-left", got "centre"', {"letterbox": "centre"}),
            ('letterbox: expected "none" for frames of unknown size, got "center"; set frame_size', {"letterbox": "center"}),
            ("letterbox: a letterboxed frame needs the size of the model's input; set model_size",
             {"frame_size": (64, 64), "letterbox": "center"}),
            ("model_size: expected whole numbers of pixels with frame_size, got [64.5, 64.0]",
             {"frame_size": (64, 64), "model_size": (64.5, 64)}),
            ("model_size: expected width and height in pixels, each at least 1, got [0.0, 0.0]",
             {"frame_size": (64, 64), "model_size": (0, 0)}),
            ("class_iou_thresholds[7]: expected a number from 0 to 1, got 1.5", {"class_iou_thresholds": {7: 1.5}}),
            ("class_sizes[7]: expected numbers of at most the greatest size, got [9.0, 9.0]", {"class_sizes": {7: (9, 8)}}),
            ("class_max_detections[7]: expected a whole number from 0 to 2^64 - 1, got -1",
             {"class_max_detections": {7: -1}}),
            ("class_sizes: expected class numbers from 0 to 65535 as keys, got 65536", {"class_sizes": {65536: (1, 2)}}),
            ("class_sizes: expected class numbers from 0 to 65535 as keys, got 'person'", {"class_sizes": {"person": (1, 2)}}),
        ):
            self.expect(error, message, decoder, **settings)
        for message, settings in (
            ("pixel_offset: expected a number, got str", {"pixel_offset": "1"}),
            ("min_size: expected a number of pixels, (width, height), or None for no limit, got '8'", {"min_size": "8"}),
            ("visible: expected the (left, upper, right, lower) edge in pixels of the model's input, got 7", {"visible": 7}),
            ("frame_size: expected (width, height) of the frame in whole pixels, got (640.5, 480)",
             {"frame_size": (640.5, 480)}),
            ("class_sizes: expected a dictionary by class number, as in {0: ((16, 32), (400, 800)), 7: (None, 64)}, got "
             "[(1, 2)]", {"class_sizes": [(1, 2)]}),
            ("class_sizes[0]: expected (minimum, maximum), got 8", {"class_sizes": {0: 8}}),
            ("class_sizes[0]: expected a number of pixels, (width, height), or None for no limit, got 'a'",
             {"class_sizes": {0: ("a", 8)}}),
            ("class_iou_thresholds[0]: expected a number, got str", {"class_iou_thresholds": {0: "0.5"}}),
        ):
            self.expect(TypeError, message, decoder, **settings)

    def test_20_names_of_other_libraries(self):
        start = "{}() got an unexpected keyword argument '{}'"
        boxes, scores = floats(8, 4), floats(8)
        for name, here in (("conf", "score_threshold"), ("iou", "iou_threshold"), ("max_det", "max_detections")):
            message = start.format("Decoder", name) + f"; it is called {here} here"
            self.expect(TypeError, message, nmsfilter.Decoder, **{name: 0.5})
            self.expect(TypeError, message, nmsfilter.decode, floats(1, 84, 8), "yolov8", **{name: 0.5})
        self.expect(TypeError, start.format("Decoder", "colour"), nmsfilter.Decoder, colour=1)
        message = start.format("batched_nms", "iou") + "; it is called iou_threshold here"
        self.expect(TypeError, message, nmsfilter.batched_nms, boxes, scores, scores, 0.5, iou=0.5)
        message = start.format("suppress", "iou") + "; it is called iou_threshold here"
        self.expect(TypeError, message, nmsfilter.suppress, boxes, scores, iou=0.5)
        with self.assertRaisesRegex(TypeError, "iou_threshold"):
            nmsfilter.nms(boxes, scores, iou=0.5)

    def test_21_sides_that_are_infinite(self):
        infinity = numpy.inf
        for numbers in ([0, 0, infinity, 5], [infinity, 0, infinity, 5], [-infinity, 0, 5, 5], [0, 0, 2e9, 5]):
            boxes = numpy.array([[0, 0, 5, 5], numbers], numpy.float32)
            message = f"expected boxes with sides of at most 10^9, got {boxes[1].tolist()} as box 1".replace("e+09", "000000000")
            for function in (nmsfilter.nms, nmsfilter.suppress):
                arguments = (0.5,) if function is nmsfilter.nms else ()
                self.expect(nmsfilter.InputError, message, function, boxes, floats(2), *arguments)
        boxes = numpy.array([[5, 5, infinity, 5, 0]], numpy.float32)
        message = "expected boxes with sides of at most 10^9, got [5.0, 5.0, inf, 5.0, 0.0] as box 0"
        self.expect(nmsfilter.InputError, message, nmsfilter.nms_rotated, boxes, floats(1), 0.5)

    @needs_torch
    def test_22_tensors_without_elements(self):
        boxes, scores = torch.ones(2, 4), torch.ones(2)
        given = "boxes: expected an array with elements in memory, got "
        for wrong, got in (
            (boxes.to("meta"), "a tensor of the device meta; pass one of another device"),
            (boxes.to_sparse(), "a tensor of the layout torch.sparse_coo; pass boxes.to_dense()"),
            (boxes.to_sparse_csr(), "a tensor of the layout torch.sparse_csr; pass boxes.to_dense()"),
            (torch.quantize_per_tensor(boxes, 0.1, 0, torch.quint8), "a quantized tensor; pass boxes.dequantize()"),
            (torch.nested.nested_tensor([boxes]), "a nested tensor; pass each of boxes.unbind()"),
        ):
            self.expect(nmsfilter.InputError, given + got, nmsfilter.nms, wrong, scores, 0.5)
        with self.assertRaisesRegex(nmsfilter.InputError, "outputs.*got a tensor of the device meta"):
            nmsfilter.decode(torch.ones(1, 84, 8, device="meta"))
        with FakeTensorMode():
            fake = torch.ones(2, 4)
        with self.assertRaisesRegex(nmsfilter.InputError, r"FakeTensor \(the address of its elements is 0\); call this"):
            nmsfilter.nms(fake, scores, 0.5)
        with self.assertRaisesRegex(nmsfilter.InputError, "call this outside of torch.vmap"):
            torch.vmap(lambda boxes: nmsfilter.nms(boxes, scores, 0.5))(boxes[None])


if __name__ == "__main__":
    unittest.main()
