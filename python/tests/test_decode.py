# SPDX-License-Identifier: MIT OR Apache-2.0
"""decode: the recorded outputs of data/models2026 with the survivors that another program computed; arguments; batches."""

import concurrent.futures
import copy
import csv
import inspect
import json
import multiprocessing
import pickle
import re
import threading
import unittest
import warnings

import numpy
from arrays import DATA, ROOT, OnlyDlpack, needs_data, needs_torch, torch

import nmsfilter

#: Families whose outputs are not suppressed.
SELECTED = {"six", "detr_cat", "detr", "detr_post", "ssd_post", "effnms"}


def plain(value):
    """The value with lists in place of tuples."""
    if isinstance(value, dict):
        return {key: plain(item) for key, item in value.items()}
    return [plain(item) for item in value] if isinstance(value, (list, tuple)) else value


def recorded_cases():
    """The cases with decoder and tolerance, as the Rust test has them."""
    text = (ROOT / "tests/support/recorded.rs").read_text()
    table = text[text.index("pub const CASES") :]
    table = table[: table.index("];")]
    return [(name, decoder, float(near)) for name, decoder, near in re.findall(r'\("(\S+)", "(\S+)", ([\d.]+)\)', table)]


def recorded(name):
    """The arrays, the arguments of Decoder, and the rows of the expected survivors."""
    folder = DATA / "data/models2026" / name
    case = json.loads((folder / "case.json").read_text())
    outputs = {key: numpy.load(folder / tensor["file"]) for key, tensor in case["tensors"].items()}
    outputs = {key: array.reshape(case["tensors"][key]["shape"]) for key, array in outputs.items()}
    scale = case["params"].get("coordinate_scale", 1)
    settings = {
        # There, a score equal to the threshold is below it.
        "score_threshold": float(numpy.nextafter(numpy.float32(case["score_threshold"]), numpy.float32(1))),
        "iou_threshold": case["iou_threshold"],
        "model_size": tuple(case["model_input"]),
        "method": "none" if case["family"] in SELECTED else "greedy",
        "coordinates": "normalized" if scale != 1 and case["family"] in ("six", "v8") else "auto",
        "quantization": {
            key: (tensor["scale"], tensor["zero_point"]) for key, tensor in case["tensors"].items() if "scale" in tensor
        },
    }
    with open(folder / "expected.csv") as file:
        rows = list(csv.DictReader(file))
    return outputs, settings, rows


@needs_data("data/models2026")
class Recorded(unittest.TestCase):
    def test_survivors_are_the_expected_ones(self):
        cases = recorded_cases()
        self.assertEqual(len(cases), 35)
        for name, decoder, near in cases:
            with self.subTest(case=name):
                outputs, settings, rows = recorded(name)
                with warnings.catch_warnings():
                    warnings.simplefilter("error")
                    found = nmsfilter.decode(outputs, decoder, **settings)
                count = int(found.counts[0])
                self.assertEqual((found.counts.shape, count), ((1,), len(rows)))

                def column(field):
                    return [float(row[field]) for row in rows]

                boxes = numpy.column_stack([column(field) for field in ("x1", "y1", "x2", "y2")])
                numpy.testing.assert_allclose(found.boxes[0, :count], boxes, rtol=0, atol=max(near, 1e-4))
                numpy.testing.assert_allclose(found.scores[0, :count], column("score"), rtol=0, atol=1e-5)
                self.assertEqual(found.classes[0, :count].tolist(), column("class"))
                self.assertEqual(found.anchors[0, :count].tolist(), column("row"))
                for padded in (found.boxes, found.scores, found.classes, found.anchors):
                    self.assertFalse(padded[0, count:].any())
                self.check_details(found, rows, name)

    def check_details(self, found, rows, name):
        fields = list(rows[0])
        points = sorted({int(field[1:-1]) for field in fields if re.fullmatch(r"k\d+x", field)})
        self.assertEqual(found.keypoints is None, not points)
        case = json.loads((DATA / "data/models2026" / name / "case.json").read_text())
        if case["params"].get("keypoint_scale", 0) != case["params"].get("coordinate_scale", 0):
            points = []  # An export with boxes from 0 to 1 and keypoints in pixels.
        for index, row in enumerate(rows):
            for point in points:
                expected = [float(row[f"k{point}x"]), float(row[f"k{point}y"]), float(row.get(f"k{point}v", 1))]
                numpy.testing.assert_allclose(found.keypoints[0, index, point], expected, rtol=0, atol=0.02)
            if "angle" in fields:
                expected = [float(row[field]) for field in ("cx", "cy", "w", "h", "angle")]
                numpy.testing.assert_allclose(found.oriented_boxes[0, index], expected, rtol=0, atol=0.02)
        self.assertEqual(found.oriented_boxes is None, "angle" not in fields)
        self.assertEqual(found.mask_areas is None, "mask_area" not in fields)
        if "mask_area" not in fields:
            self.assertIsNone(found.mask(0, 0))
            return
        stored = numpy.load(DATA / "data/models2026" / name / "masks.npz")
        count, height, width = stored["shape"]
        expected = numpy.unpackbits(stored["masks"], axis=-1, count=width).reshape(count, height, width)
        for index in range(len(rows)):
            left, top, across, down = found.mask_areas[0, index].tolist()
            mask = found.mask(0, index)
            self.assertEqual(mask.shape, (down, across))
            whole = numpy.zeros((height, width), numpy.uint8)
            whole[top : top + down, left : left + across] = mask
            # Near 0, the sum of another order of additions can have another sign.
            self.assertLessEqual((whole != expected[index]).sum(), 2, name)

    def test_a_batch_is_its_images(self):
        outputs, settings, rows = recorded("02_seg_yolov8/bus")
        other, _, other_rows = recorded("02_seg_yolov8/street")
        empty = {name: numpy.zeros_like(array) for name, array in outputs.items()}
        batch = {name: numpy.concatenate([outputs[name], empty[name], other[name]]) for name in outputs}
        found = nmsfilter.decode(batch, "yolov8-seg", **settings, max_detections=7)
        self.assertEqual(found.counts.tolist(), [len(rows), 0, 7])
        self.assertEqual(found.boxes.shape, (3, 7, 4))
        for image, single in ((0, outputs), (2, other)):
            alone = nmsfilter.decode(single, "yolov8-seg", **settings, max_detections=7)
            for field in ("boxes", "scores", "classes", "anchors", "mask_areas", "columns"):
                numpy.testing.assert_array_equal(getattr(found, field)[image], getattr(alone, field)[0])
            for index in range(int(alone.counts[0])):
                numpy.testing.assert_array_equal(found.mask(image, index), alone.mask(0, index))
        with self.assertRaises(IndexError):
            found.mask(1, 0)

    def test_without_detections_the_arrays_have_the_same_shapes(self):
        outputs, settings, _ = recorded("03_pose_pixels/bus")
        settings["score_threshold"] = 1.0
        found = nmsfilter.decode(outputs, "yolov8-pose", **settings)
        self.assertEqual((found.counts.tolist(), found.keypoints.shape), ([0], (1, 1000, 17, 3)))
        found = nmsfilter.decode(outputs, "yolov8-pose", **settings, max_detections=0)
        self.assertEqual(found.boxes.shape, (1, 0, 4))

    def test_outputs_in_each_form(self):
        outputs, settings, rows = recorded("03_pose_pixels/bus")
        array = outputs["output0"]
        for form in (array, [array], (array,), {"anything": array}, array.astype(float), OnlyDlpack(array)):
            found = nmsfilter.decode(form, "yolov8-pose", **settings)
            self.assertEqual(numpy.asarray(found.counts).tolist(), [len(rows)])
        self.assertIsInstance(found.boxes, nmsfilter.Array)

    @needs_torch
    def test_pytorch(self):
        outputs, settings, rows = recorded("03_pose_pixels/bus")
        expected = nmsfilter.decode(outputs, "yolov8-pose", **settings)
        found = nmsfilter.decode(torch.from_numpy(outputs["output0"]), "yolov8-pose", **settings)
        self.assertIsInstance(found.boxes, torch.Tensor)
        self.assertEqual((found.classes.dtype, found.counts.dtype), (torch.int32, torch.int32))
        numpy.testing.assert_array_equal(found.keypoints.numpy(), expected.keypoints)

    def test_ray_actors(self):
        outputs, settings, rows = recorded("03_pose_pixels/bus")
        actor = nmsfilter.BatchDecoder(["output0"], "yolov8-pose", **settings)
        batch = {"output0": numpy.repeat(outputs["output0"], 2, 0), "path": numpy.array(["a", "b"])}
        result = actor(batch)
        self.assertEqual(result["counts"].tolist(), [len(rows)] * 2)
        self.assertEqual(result["path"].tolist(), ["a", "b"])
        self.assertEqual({len(column) for column in result.values()}, {2})
        self.assertNotIn("output0", result)
        with self.assertRaisesRegex(KeyError, "output0"):
            actor({"path": batch["path"]})


class Misread(unittest.TestCase):
    """Outputs that another decoder reads than theirs."""

    #: Rows of corners, score and class, as end-to-end models have them.
    ROWS = numpy.tile(numpy.array([10, 20, 60, 90, 0.9, 3], numpy.float32), (1, 300, 1))

    def issued(self, function):
        with warnings.catch_warnings(record=True) as issued:
            warnings.simplefilter("always")
            function()
        return issued

    def test_each_decoder_warns_once_and_names_its_arguments(self):
        for _ in range(2):
            decoder = nmsfilter.Decoder("yolov8")
            issued = self.issued(lambda: [decoder(self.ROWS) for _ in range(12)])
            texts = [str(warning.message) for warning in issued]
            self.assertIn('set decoder="end2end", or num_classes=2 if the model has that many', texts[0])
            self.assertIn("are corners, but decoder yolov8 reads centers and sizes", texts[1])
            self.assertIn("a score is 3, but scores of decoder yolov8 are probabilities from 0 to 1", texts[2])
            self.assertEqual(len(texts), len(set(texts)))
            for warning in issued:
                self.assertIs(warning.category, nmsfilter.MisreadWarning)
                self.assertEqual(warning.filename, __file__)
        self.assertEqual(self.issued(lambda: nmsfilter.decode(self.ROWS, "end2end")), [])

    def test_the_end_of_a_few_images_is_judged(self):
        box = numpy.array([[[0.2, 0.2, 0.6, 0.9, 0.9, 3]]], numpy.float32)
        decoder = nmsfilter.Decoder("end2end", model_size=(640, 640))
        self.assertEqual(self.issued(lambda: decoder(box)), [])
        issued = self.issued(lambda: [decoder.finish(), decoder.finish()])
        self.assertEqual(len(issued), 1)
        self.assertIn('set coordinates="normalized"', str(issued[0].message))

    def test_angles_in_degrees_are_warned_of(self):
        boxes = numpy.array([[50, 50, 40, 20, 30], [52, 50, 40, 20, 0.5]], numpy.float32)
        scores = numpy.array([0.9, 0.8], numpy.float32)
        groups = numpy.array([0, 1])
        for run in (
            lambda: nmsfilter.nms_rotated(boxes, scores, 0.5),
            lambda: nmsfilter.batched_nms_rotated(boxes, scores, groups, 0.5),
        ):
            issued = self.issued(run)
            self.assertEqual(len(issued), 1)
            self.assertIn("an angle of 30 radians, so angles are probably degrees", str(issued[0].message))
        boxes[0, 4] = 6.3
        self.assertEqual(self.issued(lambda: nmsfilter.nms_rotated(boxes, scores, 0.5)), [])
        upright = numpy.array([[0, 0, 40, 40], [50, 50, 90, 90]], numpy.float32)
        self.assertEqual(self.issued(lambda: nmsfilter.nms(upright, scores, 0.5)), [])

    def test_decode_warns_where_it_is_called(self):
        issued = self.issued(lambda: nmsfilter.decode(self.ROWS, "yolov8", score_threshold=0.31))
        self.assertEqual({warning.filename for warning in issued}, {__file__})
        self.assertEqual(len(issued), 3)

    def test_a_filter_makes_exceptions_of_them(self):
        decoder = nmsfilter.Decoder("yolov8")
        with warnings.catch_warnings():
            warnings.simplefilter("error", nmsfilter.MisreadWarning)
            for _ in range(2):
                with self.assertRaisesRegex(nmsfilter.MisreadWarning, "end2end"):
                    decoder(self.ROWS)
        self.assertEqual(len(self.issued(lambda: decoder(self.ROWS))), 3)

    def test_a_hook_of_warnings_can_call_the_decoder(self):
        decoder = nmsfilter.Decoder("yolov8")
        counts = []
        with warnings.catch_warnings():
            warnings.simplefilter("always")
            warnings.showwarning = lambda *arguments: counts.append(len(decoder(self.ROWS).counts))
            decoder(self.ROWS)
        self.assertEqual(counts, [1, 1, 1])

    @needs_data("data/models2026")
    def test_recorded_outputs_of_yolo26(self):
        outputs, _, _ = recorded("01_six_yolo26/bus")
        issued = self.issued(lambda: nmsfilter.decode(outputs, "yolov8"))
        self.assertIn("end2end", str(issued[0].message))


class Arguments(unittest.TestCase):
    #: Two boxes of three classes.
    OUTPUT = numpy.zeros((1, 7, 20), numpy.float32)
    OUTPUT[0, :, :2] = [[10, 50], [10, 50], [8, 8], [8, 8], [0.9, 0.1], [0.2, 0.7], [0.1, 0.65]]

    def test_thresholds_by_class(self):
        def classes(**settings):
            found = nmsfilter.decode(self.OUTPUT, "yolov8", **settings)
            return found.classes[0, : found.counts[0]].tolist()

        self.assertEqual(classes(), [0, 1])
        self.assertEqual(classes(score_threshold=0.8), [0])
        self.assertEqual(classes(score_threshold=[0.95, 0.5, 0.5]), [1])
        # Classes beyond the end are excluded.
        self.assertEqual(classes(score_threshold=[0.5]), [0])
        self.assertEqual(classes(score_threshold=0.6, multi_label=True), [0, 1, 2])
        self.assertEqual(classes(score_threshold=0.6, multi_label=True, class_agnostic=True), [0, 1])

    def test_a_layout_as_text(self):
        text = (ROOT / "core/src/decoder/families/end2end.layout").read_text()
        rows = numpy.array([[[1, 2, 11, 12, 0.9, 3], [1, 2, 11, 12, 0.1, 3]]], numpy.float32)
        by_name, by_text = nmsfilter.decode(rows, "end2end"), nmsfilter.decode(rows, layout=text)
        self.assertEqual(by_name.boxes[0, 0].tolist(), [1, 2, 11, 12])
        numpy.testing.assert_array_equal(by_name.boxes, by_text.boxes)
        with self.assertRaisesRegex(nmsfilter.InputError, "^layout: "):
            nmsfilter.Decoder(layout="nonsense")

    def test_a_decoder_is_used_by_several_threads(self):
        decoder = nmsfilter.Decoder("yolov8")
        expected = decoder(self.OUTPUT).boxes
        equal = []

        def work():
            for _ in range(50):
                equal.append(bool((decoder(self.OUTPUT).boxes == expected).all()))

        threads = [threading.Thread(target=work) for _ in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        self.assertEqual(equal, [True] * 200)

    def test_decoders_are_kept_for_the_same_settings(self):
        from nmsfilter import _decode

        for _ in range(3):
            for index in range(20):
                nmsfilter.decode(self.OUTPUT, "yolov8", score_threshold=[0.5, index / 100, 0.5])
        self.assertEqual(len(_decode._of_thread.decoders), 16)
        known = list(_decode._of_thread.decoders.values())
        nmsfilter.decode(self.OUTPUT, "yolov8", score_threshold=[0.5, 0.19, 0.5])
        self.assertEqual(list(_decode._of_thread.decoders.values()), known)

    def test_a_decoder_is_pickled_with_its_arguments(self):
        layout = (ROOT / "core/src/decoder/families/end2end.layout").read_text()
        chosen = [
            {"decoder": "yolov8", "score_threshold": [0.875, 0.5, 0.25], "quantization": {"a": (0.5, -3), "b": (0.25, 0)}},
            {
                "layout": layout, "score_threshold": 0.5, "iou_threshold": 0.75, "model_size": (640.0, 480.0),
                "max_detections": 7, "max_candidates": 8, "method": "map-reduce", "overlap": "smaller",
                "class_agnostic": True, "multi_label": True, "masks": False, "box_format": "center",
                "coordinates": "pixels", "num_classes": 80, "score_activation": "softmax", "keypoint_shape": (17, 3),
                "quantization": (0.5, 3), "threshold_inclusive": True, "pixel_offset": 1.0, "min_size": (5.0, 6.0),
                "max_size": (70.0, 80.0), "class_iou_thresholds": {3: 0.25}, "class_max_detections": {0: 9},
                "class_sizes": {3: ((1.0, 2.0), (3.0, 4.0))}, "mask_size": "frame", "visible": (0.0, 60.0, 640.0, 400.0),
                "frame_size": (1280, 720), "letterbox": "center", "sigma": 0.25, "lose_released": True,
                "region_edges": "lower", "edge_margin": 15.0, "edge_score": 0.25,
                "embedding_distance": 0.5, "embedding_iou_threshold": 0.75, "background": "last",
                "channels": "last", "labels": ["cat", "dog"],
            },
        ]
        names = set(inspect.signature(nmsfilter.Decoder).parameters) - {"others"}
        self.assertEqual(names - {"decoder"}, set(chosen[1]), "an argument is not tested")
        for arguments in chosen:
            decoder = nmsfilter.Decoder(**arguments)
            for other in (pickle.loads(pickle.dumps(decoder)), copy.copy(decoder), copy.deepcopy(decoder)):
                positional, named = other.__getnewargs_ex__()
                self.assertEqual((positional, set(named)), ((), names))
                for name, value in arguments.items():
                    self.assertEqual(plain(named[name]), plain(value), name)
        other = pickle.loads(pickle.dumps(nmsfilter.Decoder("yolov8", score_threshold=[0.95, 0.5, 0.5])))
        found = other(self.OUTPUT)
        self.assertEqual(found.classes[0, : found.counts[0]].tolist(), [1])

    def test_actors_are_sent_to_other_processes(self):
        actor = nmsfilter.BatchDecoder(["output0"], "yolov8", score_threshold=0.8)
        with concurrent.futures.ProcessPoolExecutor(1, multiprocessing.get_context("spawn")) as pool:
            result = pool.submit(actor, {"output0": self.OUTPUT}).result()
        self.assertEqual(result["counts"].tolist(), [1])

    def test_the_names_of_decoders(self):
        self.assertIn("yolov8-pose", nmsfilter.decoders())
        for name in nmsfilter.decoders():
            nmsfilter.Decoder(name)


class Parameters(unittest.TestCase):
    """Parameters with results that were computed by hand."""

    def kept(self, boxes, scores, classes=None, **settings):
        """The indices of the boxes that are kept, best first."""
        outputs = {"boxes": numpy.array(boxes, numpy.float32), "scores": numpy.array(scores, numpy.float32)}
        if classes is not None:
            outputs["labels"] = numpy.array(classes, numpy.int64)
        outputs = {name: array[numpy.newaxis] for name, array in outputs.items()}
        found = nmsfilter.decode(outputs, "boxes", **settings)
        return found.anchors[0, : found.counts[0]].tolist()

    def test_an_overlap_equal_to_the_threshold(self):
        # The first box covers half of the second.
        boxes, scores = [[0, 0, 10, 10], [0, 5, 10, 15]], [0.9, 0.8]
        settings = {"overlap": "smaller", "iou_threshold": 0.5}
        self.assertEqual(self.kept(boxes, scores, **settings), [0, 1])
        self.assertEqual(self.kept(boxes, scores, **settings, threshold_inclusive=True), [0])

    def test_an_offset_of_a_pixel(self):
        # Overlap of 4 x 9 of 9 x 9 pixels, or with the offset of 5 x 10 of 10 x 10.
        boxes, scores = [[0, 0, 9, 9], [0, 5, 9, 14]], [0.9, 0.8]
        settings = {"overlap": "smaller", "iou_threshold": 0.47}
        self.assertEqual(self.kept(boxes, scores, **settings), [0, 1])
        self.assertEqual(self.kept(boxes, scores, **settings, pixel_offset=1), [0])

    def test_limits_of_sizes(self):
        boxes, scores = [[0, 0, 10, 10], [20, 0, 40, 10], [50, 0, 80, 40]], [0.9, 0.8, 0.7]
        self.assertEqual(self.kept(boxes, scores, min_size=15), [2])
        self.assertEqual(self.kept(boxes, scores, min_size=(15, 5)), [1, 2])
        self.assertEqual(self.kept(boxes, scores, max_size=20), [0, 1])
        self.assertEqual(self.kept(boxes, scores, max_size=(30, 15)), [0, 1])

    def test_the_visible_part(self):
        boxes, scores = [[0, 0, 10, 10], [0, 20, 10, 30], [0, 8, 10, 21]], [0.9, 0.8, 0.7]
        self.assertEqual(self.kept(boxes, scores, visible=(0, 10, 64, 64)), [1, 2])

    def test_boxes_at_an_inner_edge(self):
        boxes, scores = [[12, 0, 20, 10], [20, 20, 30, 30], [50, 20, 64, 30]], [0.9, 0.8, 0.7]
        # The left edge of the visible part is 10 pixels inside the frame.
        region = {"frame_size": (64, 64), "model_size": (64, 64), "visible": (10, 0, 64, 64)}
        self.assertEqual(self.kept(boxes, scores, **region), [0, 1, 2])
        self.assertEqual(self.kept(boxes, scores, **region, region_edges="drop"), [1, 2])
        self.assertEqual(self.kept(boxes, scores, **region, region_edges="drop", edge_margin=1), [0, 1, 2])
        self.assertEqual(self.kept(boxes, scores, **region, region_edges="lower"), [1, 2, 0])
        self.assertEqual(self.kept(boxes, scores, **region, region_edges="lower", edge_score=0.75), [1, 0, 2])
        self.assertEqual(self.kept(boxes, scores, visible=(10, 0, 64, 64), region_edges="drop"), [0, 1, 2])

    def test_rules_of_classes(self):
        boxes = [[0, 0, 10, 10], [0, 4, 10, 14], [50, 0, 60, 10], [50, 4, 60, 14], [90, 0, 95, 5]]
        scores, classes = [0.9, 0.8, 0.7, 0.6, 0.5], [0, 0, 1, 1, 1]

        def kept(**settings):
            return self.kept(boxes, scores, classes, **settings)

        # The overlap of neighbors is 3/7.
        self.assertEqual(kept(), [0, 1, 2, 3, 4])
        self.assertEqual(kept(class_iou_thresholds={1: 0.4}), [0, 1, 2, 4])
        self.assertEqual(kept(class_max_detections={1: 2}), [0, 1, 2, 3])
        self.assertEqual(kept(class_max_detections={1: 2}, max_detections=3), [0, 1, 2])
        self.assertEqual(kept(class_sizes={1: ((6, 6), None)}), [0, 1, 2, 3])
        self.assertEqual(kept(class_sizes={0: (None, 5), 1: (None, (5, 5))}), [4])
        self.assertEqual(kept(class_sizes={1: (None, None)}, min_size=7), [0, 1, 2, 3, 4])
        rules = {"class_iou_thresholds": {0: 0.4}, "class_max_detections": {1: 1}}
        self.assertEqual(kept(**rules), [0, 2])

    def test_a_letterboxed_frame(self):
        # The frame of 128 x 64 has 64 x 32 pixels of the model's input of 64 x 64: 16 rows from the upper edge with "center".
        boxes, scores = [[0, 0, 10, 16], [0, 17, 10, 27], [20, 40, 24, 44]], [0.9, 0.8, 0.7]
        frame = {"model_size": (64, 64), "frame_size": (128, 64)}
        self.assertEqual(self.kept(boxes, scores, **frame), [0, 1, 2])
        self.assertEqual(self.kept(boxes, scores, **frame, letterbox="center"), [1, 2])
        self.assertEqual(self.kept(boxes, scores, **frame, letterbox="top-left"), [0, 1])
        # The last box has 8 x 8 pixels of the letterboxed frame.
        self.assertEqual(self.kept(boxes, scores, **frame, letterbox="center", max_size=8), [2])
        self.assertEqual(self.kept(boxes, scores, **frame, letterbox="center", class_sizes={0: (9, None)}), [1])
        self.assertEqual(self.kept(boxes, scores, **frame, letterbox="center", max_size=7), [])
        self.assertEqual(self.kept(boxes, scores, max_size=7), [2])
        # In the stretched frame, it has 8 x 4 pixels.
        self.assertEqual(self.kept(boxes, scores, **frame, max_size=(8, 4)), [2])
        # The visible part can be given besides.
        self.assertEqual(self.kept(boxes, scores, **frame, letterbox="center", visible=(0, 0, 64, 17)), [0])

    def test_boxes_of_a_frame_without_model_size_are_multiplied_by_its_size(self):
        outputs = {"boxes": numpy.array([[[0.25, 0.5, 0.5, 1]]], numpy.float32), "scores": numpy.array([[0.9]], numpy.float32)}
        found = nmsfilter.decode(outputs, "boxes", coordinates="normalized", frame_size=(400, 200))
        self.assertEqual(found.boxes[0, 0].tolist(), [100, 100, 200, 200])

    def test_masks_in_pixels_of_the_frame(self):
        # One box that covers the model's input of 8 x 8. The prototypes have 2 x 2 pixels; only the left ones are set.
        boxes = numpy.zeros((1, 6, 20), numpy.float32)
        boxes[0, :, 0] = [4, 4, 8, 8, 0.9, 1]
        outputs = {"output0": boxes, "output1": numpy.array([[[[1, -1], [1, -1]]]], numpy.float32)}

        def mask(**settings):
            found = nmsfilter.decode(outputs, "yolov8-seg", model_size=(8, 8), **settings)
            self.assertEqual(found.counts.tolist(), [1])
            return found.mask_areas[0, 0].tolist(), found.mask(0, 0).tolist()

        self.assertEqual(mask(frame_size=(16, 16)), ([0, 0, 2, 2], [[1, 0]] * 2))
        row = [1] * 8 + [0] * 8
        self.assertEqual(mask(frame_size=(16, 16), mask_size="frame"), ([0, 0, 16, 16], [row] * 16))
        letterboxed = mask(frame_size=(16, 8), letterbox="center", mask_size="frame")
        self.assertEqual(letterboxed, ([0, 0, 16, 8], [row] * 8))
        # A frame of 4 x 8 has 4 x 8 pixels of the input, behind a border of 2.
        letterboxed = mask(frame_size=(4, 8), letterbox="center", mask_size="frame")
        self.assertEqual(letterboxed, ([0, 0, 4, 8], [[1, 1, 0, 0]] * 8))


if __name__ == "__main__":
    unittest.main()
