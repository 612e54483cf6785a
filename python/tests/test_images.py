# SPDX-License-Identifier: MIT OR Apache-2.0
"""Results of single images, slices of a frame, and processes."""

import multiprocessing
import os
import pickle
import signal
import subprocess
import sys
import threading
import time
import unittest

import numpy
from arrays import needs_torch, torch

import nmsfilter

LABELS = ["cat", "dog"]


def output(*images):
    """An output of yolov8 with two classes; boxes are center x, center y, width, height, class, score."""
    rows = numpy.zeros((len(images), 6, 8), numpy.float32)
    for image, boxes in enumerate(images):
        for index, (*box, number, score) in enumerate(boxes):
            rows[image, :4, index] = box
            rows[image, 4 + number, index] = score
    return rows


BATCH = output([(320, 320, 100, 80, 0, 0.5), (100, 200, 50, 40, 1, 0.75)], [], [(630, 400, 40, 40, 1, 0.5)])
#: A frame of 1920x1080 is 640x360 at a third of its size, below a border of 140 rows.
IN_FRAME = {"model_size": (640, 640), "frame_size": (1920, 1080), "letterbox": "center"}


def decode_and_send(queue):
    queue.put(nmsfilter.decode(BATCH, "yolov8", labels=LABELS, **IN_FRAME))


class Images(unittest.TestCase):
    def check(self, found):
        self.assertEqual((len(found), [len(image) for image in found]), (3, [2, 0, 1]))
        first, last = found[0], found[-1]
        self.assertEqual(first.boxes.tolist(), [[225, 120, 375, 240], [810, 420, 1110, 660]])
        self.assertEqual((first.scores.tolist(), first.classes.tolist(), first.labels), ([0.75, 0.5], [1, 0], ["dog", "cat"]))
        self.assertEqual(first.anchors.tolist(), [1, 0])
        # Clipped to the frame, as the element does.
        self.assertEqual(last.boxes.tolist(), [[1830, 720, 1920, 840]])
        self.assertEqual((found[1].boxes.shape, found[1].labels), ((0, 4), []))
        self.assertEqual(found.boxes[0, 0].tolist(), [75, 180, 125, 220])

    def test_images_are_without_padding_and_in_pixels_of_the_frame(self):
        self.check(nmsfilter.decode(BATCH, "yolov8", labels=LABELS, **IN_FRAME))
        found = nmsfilter.decode(BATCH, "yolov8")
        self.assertEqual((found[0].boxes[0].tolist(), found[0].labels), ([75, 180, 125, 220], None))
        for wrong in (3, -4):
            with self.assertRaisesRegex(IndexError, f"there is no image {wrong} of 3"):
                found[wrong]
        self.assertEqual(nmsfilter.decode(BATCH, "yolov8", labels=["cat"])[0].labels, ["class-1", "cat"])
        self.assertEqual(nmsfilter.decode(BATCH, "yolov8", max_detections=0)[2].boxes.shape, (1, 4))

    @needs_torch
    def test_images_of_pytorch(self):
        found = nmsfilter.decode(torch.from_numpy(BATCH), "yolov8", labels=LABELS, **IN_FRAME)
        self.assertIsInstance(found[0].boxes, torch.Tensor)
        self.check(found)
        self.check(pickle.loads(pickle.dumps(found)))

    def test_keypoints_oriented_boxes_and_masks(self):
        rows = numpy.zeros((1, 5 + 2 * 3, 20), numpy.float32)
        rows[0, :, 0] = [320, 320, 100, 80, 0.5, 0, 140, 1, 640, 500, 0.5]
        pose = nmsfilter.decode(rows, "yolov8-pose", keypoint_shape=(2, 3), **IN_FRAME)[0]
        self.assertEqual(pose.keypoints.tolist(), [[[0, 0, 1], [1920, 1080, 0.5]]])
        rows = numpy.zeros((1, 6, 20), numpy.float32)
        rows[0, :, 0] = [320, 320, 100, 80, 0.5, 0.25]
        oriented = nmsfilter.decode(rows, "yolov8-obb", num_classes=1, **IN_FRAME)[0]
        self.assertEqual(oriented.oriented_boxes.tolist(), [[960, 540, 300, 240, 0.25]])
        boxes = numpy.zeros((1, 6, 20), numpy.float32)
        boxes[0, :, 0] = [4, 4, 8, 8, 0.9, 1]
        outputs = [boxes, numpy.array([[[[1, -1], [1, -1]]]], numpy.float32)]
        found = nmsfilter.decode(outputs, "yolov8-seg", model_size=(8, 8))
        for image in (found[0], pickle.loads(pickle.dumps(found))[0]):
            self.assertEqual([mask.tolist() for mask in image.masks], [[[1, 0]] * 2])

    def test_results_pass_between_processes(self):
        queue = multiprocessing.get_context("spawn").Queue()
        process = multiprocessing.get_context("spawn").Process(target=decode_and_send, args=(queue,))
        process.start()
        found = queue.get(timeout=60)
        process.join()
        self.check(found)
        self.check(pickle.loads(pickle.dumps(found)))
        image = pickle.loads(pickle.dumps(found[0]))
        self.assertEqual((image.labels, image.boxes.tolist()), (["dog", "cat"], found[0].boxes.tolist()))

    def test_results_are_pickled_without_numpy(self):
        program = (
            "import ctypes, pickle, struct, nmsfilter\n"
            "class Floats:\n"
            "    def __init__(self, shape, numbers):\n"
            "        self.kept = (ctypes.c_float * len(numbers))(*numbers)\n"
            "        data = (ctypes.addressof(self.kept), False)\n"
            "        self.__array_interface__ = {'version': 3, 'typestr': '<f4', 'shape': shape, 'data': data}\n"
            "numbers = [0.0] * 80\n"
            "for row, number in enumerate((320, 320, 100, 80, 0.5)): numbers[row * 16 + 3] = number\n"
            "found = nmsfilter.decode(Floats((1, 5, 16), numbers), 'yolov8', num_classes=1, labels=['cat'])\n"
            "for found in (found, pickle.loads(pickle.dumps(found))):\n"
            "    image = found[0]\n"
            "    at = image.boxes.__array_interface__['data'][0]\n"
            "    print(len(image), image.labels, image.boxes.shape, struct.unpack('4f', ctypes.string_at(at, 16)))\n"
        )
        run = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
        self.assertEqual(run.stdout, "1 ['cat'] (1, 4) (270.0, 280.0, 370.0, 360.0)\n" * 2)

    def test_the_line_for_supervision(self):
        try:
            import supervision
        except ImportError:
            self.skipTest("supervision is not installed")
        image = nmsfilter.decode(BATCH, "yolov8", **IN_FRAME)[0]
        found = supervision.Detections(image.boxes, confidence=image.scores, class_id=image.classes)
        self.assertEqual((len(found), found.xyxy.tolist()), (2, image.boxes.tolist()))


class Slices(unittest.TestCase):
    FRAME, SIZE = (1200, 640), (640, 640)

    def test_places_are_those_of_sahi(self):
        expected = [(0, 0, 640, 640), (512, 0, 1152, 640), (560, 0, 1200, 640)]
        self.assertEqual(nmsfilter.slices(self.FRAME, self.SIZE), expected)
        self.assertEqual(nmsfilter.slices((320, 240), self.SIZE), [(0, 0, 320, 240)])
        self.assertEqual(len(nmsfilter.slices((1024, 1024), (256, 256), overlap=0.2)), 25)
        for settings, text in (
            (((640, 640), (0, 640)), r"size: expected \(width, height\).* got \(0, 640\)"),
            (((640, 640), (64, 64), 0.95), "overlap: expected a fraction from 0 to 0.9, got 0.95"),
            (((10**6, 10**6), (64, 64)), "size: expected at most 4096 slices"),
        ):
            with self.assertRaisesRegex(nmsfilter.InputError, text):
                nmsfilter.slices(*settings)

    def in_slices(self, *boxes):
        """The output for each slice, of boxes (left, top, right, bottom, score) of the frame that a model finds whole or cut."""
        images = []
        for left, top, right, bottom in nmsfilter.slices(self.FRAME, self.SIZE):
            rows = []
            for x1, y1, x2, y2, score in boxes:
                x1, x2 = max(x1, left) - left, min(x2, right) - left
                if x2 > x1:
                    rows.append(((x1 + x2) / 2, (y1 + y2) / 2, x2 - x1, y2 - y1, 0, score))
            images.append(rows)
        return output(*images)

    def test_detections_of_slices_are_those_of_the_frame(self):
        slices = nmsfilter.slices(self.FRAME, self.SIZE)
        # One is in the overlap; one is cut by the first slice, the parts of which have no overlap of 0.45.
        outputs = self.in_slices((570, 100, 620, 200, 0.75), (600, 300, 720, 350, 0.5), (5, 5, 50, 50, 0.25))
        settings = {"model_size": self.SIZE, "frame_size": self.FRAME, "labels": LABELS}
        kept = nmsfilter.Decoder("yolov8", **settings)(outputs, regions=slices)
        whole = [[570, 100, 620, 200], [600, 300, 720, 350], [5, 5, 50, 50]]
        self.assertEqual(sorted(kept[0].boxes.tolist()), sorted([*whole, [600, 300, 640, 350]]))
        decoder = nmsfilter.Decoder("yolov8", region_edges="drop", **settings)
        [found] = decoder(outputs, regions=slices)
        self.assertEqual((found.boxes.tolist(), found.labels), (whole, ["cat"] * 3))
        # Two frames, and a frame alone after them.
        both = decoder(numpy.concatenate([outputs, outputs * 0]), regions=slices)
        self.assertEqual([len(image) for image in both], [3, 0])
        self.assertEqual(len(decoder(outputs)), 3)
        merged = nmsfilter.Decoder("yolov8", method="merge", overlap="smaller", iou_threshold=0.5, **settings)
        self.assertEqual(sorted(merged(outputs, regions=slices)[0].boxes.tolist()), sorted(whole))

    def test_slices_that_do_not_fit(self):
        slices, outputs = nmsfilter.slices(self.FRAME, self.SIZE), self.in_slices((5, 5, 50, 50, 0.5))
        decoder = nmsfilter.Decoder("yolov8", model_size=self.SIZE, frame_size=self.FRAME)
        for arguments, text in (
            ((outputs[:2], slices), "expected an image for each of 3 regions, got 2 images"),
            ((outputs, [(0, 0, 1201, 640)] * 3), "regions: .*1201"),
            ((outputs, [(560, 0, 560, 640)] * 3), r"regions: expected \(left, upper, right, lower\) edges inside of the frame"),
            ((outputs, []), "regions: expected .* at least one region, got none"),
        ):
            with self.assertRaisesRegex(nmsfilter.InputError, text):
                decoder(arguments[0], regions=arguments[1])
        with self.assertRaisesRegex(nmsfilter.InputError, "regions: expected the size of the frame; set frame_size"):
            nmsfilter.Decoder("yolov8")(outputs, regions=slices)
        with self.assertRaisesRegex(TypeError, "regions: expected"):
            decoder(outputs, regions=[(0, 0)])

    def test_keypoints_of_slices(self):
        slices = nmsfilter.slices(self.FRAME, self.SIZE)
        rows = numpy.zeros((3, 5 + 2 * 3, 20), numpy.float32)
        rows[2, :, 0] = [320, 320, 100, 80, 0.5, 0, 140, 1, 640, 500, 0.5]
        decoder = nmsfilter.Decoder("yolov8-pose", model_size=self.SIZE, frame_size=self.FRAME, keypoint_shape=(2, 3))
        [found] = decoder(rows, regions=slices)
        self.assertEqual(found.boxes.tolist(), [[830, 280, 930, 360]])
        self.assertEqual(found.keypoints.tolist(), [[[560, 140, 1], [1200, 500, 0.5]]])


class Forks(unittest.TestCase):
    def test_a_child_does_not_wait_for_threads_that_it_lacks(self):
        decoder, rows = nmsfilter.Decoder("yolov8", score_threshold=0.5), numpy.zeros((1, 84, 8400), numpy.float32)
        rows[0, :4], rows[0, 9] = numpy.random.default_rng(0).random((4, 8400)) * 600 + 20, 0.75
        expected, stopped = decoder(rows).counts.tolist(), threading.Event()

        def work():
            while not stopped.is_set():
                decoder(rows)

        threads = [threading.Thread(target=work) for _ in range(2)]
        for thread in threads:
            thread.start()
        try:
            for _ in range(5):
                child = os.fork()
                if child == 0:
                    os._exit(0 if decoder(rows).counts.tolist() == expected else 1)
                until = time.monotonic() + 30
                ended, status = os.waitpid(child, os.WNOHANG)
                while not ended and time.monotonic() < until:
                    time.sleep(0.01)
                    ended, status = os.waitpid(child, os.WNOHANG)
                if not ended:
                    os.kill(child, signal.SIGKILL)
                    os.waitpid(child, 0)
                self.assertEqual((bool(ended), status), (True, 0))
        finally:
            stopped.set()
            for thread in threads:
                thread.join()


@needs_torch
class Torch(unittest.TestCase):
    def test_the_negative_bit(self):
        boxes, scores = torch.tensor([[0.0, 0, 10, 10], [1, 1, 11, 11]]), torch.tensor([0.9, 0.8])
        views = (torch._neg_view(-boxes), torch.complex(boxes * 0, -boxes).conj().imag)
        for view in views:
            self.assertTrue(view.is_neg())
            self.assertEqual(nmsfilter.nms(view, scores, 0.5).tolist(), [0])
            self.assertEqual(nmsfilter.suppress(view, scores).boxes.tolist(), [[0, 0, 10, 10]])
        self.assertEqual(nmsfilter.nms(boxes * 30, torch._neg_view(-scores), 0.5).tolist(), [0])
        rows = torch.from_numpy(BATCH)
        self.assertEqual(nmsfilter.decode(torch._neg_view(-rows), "yolov8").counts.tolist(), [2, 0, 1])

    def test_operators(self):
        import nmsfilter.torch as operators

        random = torch.Generator().manual_seed(1)
        boxes, scores = torch.rand(200, 4, generator=random), torch.rand(200, generator=random)
        boxes[:, 2:] += boxes[:, :2]
        groups = torch.arange(200) % 3

        class Model(torch.nn.Module):
            def forward(self, boxes, scores, groups):
                kept = operators.nms(boxes, scores, 0.5)
                return boxes[kept], operators.batched_nms(boxes, scores, groups, 0.3, max_detections=7)

        expected = [boxes[nmsfilter.nms(boxes, scores, 0.5)].tolist()]
        expected.append(nmsfilter.batched_nms(boxes, scores, groups, 0.3, max_detections=7).tolist())
        exported = torch.export.export(Model(), (boxes, scores, groups)).module()
        for model in (Model(), torch.compile(Model(), fullgraph=True, backend="eager"), exported):
            self.assertEqual([array.tolist() for array in model(boxes, scores, groups)], expected)


if __name__ == "__main__":
    unittest.main()
