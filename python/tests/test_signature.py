# SPDX-License-Identifier: MIT OR Apache-2.0
"""The signatures of known exporters, from the inputs and outputs that ONNX Runtime reports."""

import pickle
import types
import unittest

import numpy

import nmsfilter


def node(name, type, shape):
    return types.SimpleNamespace(name=name, type=f"tensor({type})", shape=shape)


def session(inputs, outputs, **metadata):
    meta = types.SimpleNamespace(custom_metadata_map=metadata)
    return types.SimpleNamespace(get_inputs=lambda: inputs, get_outputs=lambda: outputs, get_modelmeta=lambda: meta)


def objects(found):
    count = found.counts[0]
    return list(zip(found.classes[0, :count].tolist(), found.boxes[0, :count].tolist(), strict=True))


class Signatures(unittest.TestCase):
    def test_sizes_are_an_input_of_rt_detr(self):
        model = session(
            [node("images", "float", ["N", 3, 64, 96]), node("orig_target_sizes", "int64", ["N", 2])],
            [node("labels", "int64", ["N", 2]), node("boxes", "float", ["N", 2, 4]), node("scores", "float", ["N", 2])],
        )
        facts = nmsfilter.signature(model)
        self.assertEqual((facts.name, facts.letterbox, facts.size, facts.range), ("rt-detr", "none", (96, 64), (0, 1)))
        picture = numpy.zeros((1, 3, 64, 96), "float32")
        feeds = facts.feeds(picture)
        self.assertIs(feeds.pop("images"), picture)
        sizes = feeds.pop("orig_target_sizes")
        self.assertEqual((sizes.dtype, sizes.tolist(), feeds), ("int64", [[96, 64]], {}))
        outputs = [
            numpy.array([[7, 3]]),
            numpy.array([[[10, 20, 30, 40], [50, 5, 90, 60]]], "float32"),
            numpy.array([[0.9, 0.1]], "float32"),
        ]
        found = nmsfilter.Decoder(**facts.decoder)(facts.tensors(outputs))
        self.assertEqual(objects(found), [(7, [10, 20, 30, 40])])

    def test_masks_that_are_not_read_are_named(self):
        shapes = {"dets": [1, 300, 4], "labels": [1, 300, 91], "masks": [1, 300, 108, 108]}
        for names, unread in [(["dets", "labels"], []), (list(shapes), ["masks"])]:
            outputs = [node(name, "float", shapes[name]) for name in names]
            facts = nmsfilter.signature(session([node("input", "float", [1, 3, 432, 432])], outputs))
            self.assertEqual((facts.name, facts.unread), ("rf-detr", unread))

    def test_transformers_have_dynamic_dimensions_and_softmax(self):
        dims = ["batch_size", "num_channels", "height", "width"]
        model = session(
            [node("pixel_values", "float", dims), node("pixel_mask", "int64", ["batch_size", "height", "width"])],
            [node("logits", "float", ["B", "Q", 92]), node("pred_boxes", "float", ["B", "Q", 4])],
        )
        facts = nmsfilter.signature(model)
        self.assertEqual((facts.size, facts.layout, facts.mean), ((800, 800), "nchw", (0.485, 0.456, 0.406)))
        feeds = facts.feeds(numpy.zeros((1, 3, 80, 60), "float32"))
        self.assertEqual((feeds["pixel_mask"].shape, feeds["pixel_mask"].sum()), ((1, 80, 60), 80 * 60))
        logits = numpy.full((1, 2, 92), -20, "float32")
        logits[0, 0, 16] = logits[0, 1, 91] = 20
        boxes = numpy.full((1, 2, 4), 0.5, "float32")
        found = nmsfilter.Decoder(**facts.decoder)(facts.tensors([logits, boxes]))
        self.assertEqual(objects(found), [(16, [200, 200, 600, 600])])
        # Without a logit of no object, all of most queries are below 0; fewer than 50 queries can all have objects.
        facts.tensors([logits[:, :1] * 0 - 20, boxes])
        with self.assertRaisesRegex(nmsfilter.InputError, r"^the logits of logits \(f32 1x50x92\) contradict .* is that of no"):
            facts.tensors([numpy.full((1, 50, 92), -20, "float32"), numpy.zeros((1, 50, 4), "float32")])

    def test_a_query_with_sigmoid_can_have_several_classes(self):
        logits = numpy.full((1, 2, 80), -9, "float32")
        logits[0, 0, [16, 5]] = 4, 3
        logits[0, 1, 16] = 2  # the third pair of two queries
        boxes = numpy.full((1, 2, 4), 0.5, "float32")
        expected = [(16, [16, 16, 48, 48]), (5, [16, 16, 48, 48])]
        for batch, queries in [(1, 2), ("batch_size", "num_queries")]:
            outputs = [node("logits", "float", [batch, queries, 80]), node("pred_boxes", "float", [batch, queries, 4])]
            facts = nmsfilter.signature(session([node("pixel_values", "float", [1, 3, 64, 64])], outputs))
            decoder = nmsfilter.Decoder(**facts.decoder)
            self.assertEqual(objects(decoder(facts.tensors([logits, boxes]))), expected)
            # Of three queries, and of each image of a batch.
            more = [numpy.concatenate([it, it[:, 1:]], 1).repeat(2, 0) for it in (logits, boxes)]
            found = pickle.loads(pickle.dumps(decoder))(facts.tensors(more))
            self.assertEqual((found.counts.tolist(), objects(found)), ([3, 3], [*expected, expected[0]]))
            self.assertEqual(len(nmsfilter.decode(facts.tensors(more), **{**facts.decoder, "max_detections": 1})[0].boxes), 1)
        with self.assertRaisesRegex(TypeError, '^multi_label: expected True, False or "queries", got '):
            nmsfilter.Decoder(multi_label="anchors")

    def test_a_name_takes_one_of_several(self):
        model = session([node("images", "float", [1, 3, 640, 640])], [node("output", "float", [1, 8400, 85])])
        with self.assertRaisesRegex(nmsfilter.InputError, "exporters: yolox, yolox-decoded; pass the name"):
            nmsfilter.signature(model)
        facts = nmsfilter.signature(model, name="yolox-decoded")
        self.assertEqual((facts.name, facts.channels, facts.range), ("yolox-decoded", "bgr", (0, 255)))
        with self.assertRaisesRegex(nmsfilter.InputError, "not have the signature fcos; it has yolox, yolox-decoded"):
            nmsfilter.signature(model, name="fcos")

    def test_pairs_that_a_model_selects(self):
        inputs = [node("input_1", "float", [1, 3, 416, 416]), node("image_shape", "float", [1, 2])]
        shapes = {"ExpandDims_1:0": [1, 2, 4], "ExpandDims_3:0": [1, 80, 2]}
        outputs = [node(f"yolonms_layer_1/{name}", "float", shape) for name, shape in shapes.items()]
        facts = nmsfilter.signature(session(inputs, [*outputs, node("yolonms_layer_1/concat_2:0", "int32", ["n", 3])]))
        self.assertEqual(facts.name, "zoo-yolov3")
        boxes = numpy.array([[[10, 20, 30, 40], [5, 6, 70, 80]]], "float32")
        pairs = numpy.array([[0, 16, 1], [-1, -1, -1]], "int32")
        tensors = facts.tensors([boxes, numpy.full((1, 80, 2), 0.9, "float32"), pairs])
        self.assertEqual(objects(nmsfilter.Decoder(**facts.decoder)(tensors)), [(16, [6, 5, 80, 70])])

    def test_metadata_of_ultralytics_describe_the_model(self):
        metadata = {"task": "pose", "names": "{0: 'person', 1: 'dog'}", "imgsz": "[64, 96]", "kpt_shape": "[2, 3]"}
        images, rows = node("images", "float", [1, 3, "height", "width"]), node("output0", "float", [1, 12, 126])
        facts = nmsfilter.signature(session([images], [rows], **metadata))
        self.assertEqual((facts.name, facts.letterbox, facts.size, facts.range), ("metadata", "center", (96, 64), (0, 1)))
        output = numpy.zeros((1, 12, 126), "float32")
        output[0, :, 7] = [48, 32, 20, 10, 0.1, 0.9, 40, 30, 1, 50, 35, 0.5]
        # A frame of 192 x 64 is 96 x 32 pixels of the model's input, from row 16 on.
        decoder = nmsfilter.Decoder(frame_size=(192, 64), letterbox=facts.letterbox, **facts.decoder)
        [image] = decoder(facts.tensors([output]))
        self.assertEqual((image.labels, image.boxes.tolist()), (["dog"], [[76, 22, 116, 42]]))
        self.assertEqual(image.keypoints.tolist(), [[[80, 28, 1], [100, 38, 0.5]]])
        suppressed = {"task": "detect", "names": "{0: 'person'}", "args": "{'nms': True}"}
        outputs = [node("output0", "float", [1, 300, 6])]
        facts = nmsfilter.signature(session([node("images", "float", [1, 3, 64, 96])], outputs, **suppressed))
        self.assertEqual(facts.decoder, {"method": "none", "model_size": (96, 64), "labels": ["person"]})
        unnamed = nmsfilter.signature(session([images], [rows], author="Ultralytics"))
        self.assertIsNone(unnamed)

    def test_rows_of_several_pictures_are_an_error(self):
        model = session([node("images", "float", ["B", 3, 64, 96])], [node("output", "float", ["N", 7])])
        facts = nmsfilter.signature(model)
        self.assertEqual(facts.name, "yolov7-end2end")
        rows = numpy.array([[0, 10, 20, 30, 40, 5, 0.9], [0, 50, 5, 90, 60, 7, 0.8]], "float32")
        found = nmsfilter.Decoder(**facts.decoder)(facts.tensors([rows]))
        self.assertEqual(objects(found), [(5, [10, 20, 30, 40]), (7, [50, 5, 90, 60])])
        rows[1, 0] = 1
        with self.assertRaisesRegex(nmsfilter.InputError, r"^tensor output \(f32 2x7\) has rows of several pictures; run the model with one"):
            facts.tensors([rows])

    def test_mistakes(self):
        with self.assertRaisesRegex(TypeError, "^session: expected an onnxruntime.InferenceSession, .*, got str$"):
            nmsfilter.signature("model.onnx")
        model = session([node("images", "float", [1, 3, 64, 96])], [node("output", "float", ["N", 7])])
        facts = nmsfilter.signature(model)
        rows = numpy.zeros((0, 7), "float32")
        self.assertEqual(list(facts.tensors({"output": rows})), list(facts.tensors([rows])))
        with self.assertRaisesRegex(nmsfilter.InputError, "^outputs: expected the arrays of output, got 2$"):
            facts.tensors([rows, rows])
        # A frame of 192 x 64 is 96 x 32 pixels.
        self.assertEqual(facts.place((192, 64)), (0, 16, 96, 32))
        with self.assertRaisesRegex(TypeError, r"^frame_size: expected \(width, height\) .*, got \(64, 192, 3\)$"):
            facts.place((64, 192, 3))

    def test_a_model_that_is_nearly_known_is_unknown(self):
        inputs = [node("images", "float", [1, 3, 64, 64])]
        outputs = [node("boxes", "float", ["N", 4]), node("labels", "int64", ["N"]), node("scores", "float", ["N"])]
        self.assertEqual(nmsfilter.signature(session(inputs, outputs)).name, "torchvision")
        outputs[2] = node("score", "float", ["N"])
        self.assertIsNone(nmsfilter.signature(session(inputs, outputs)))


if __name__ == "__main__":
    unittest.main()
