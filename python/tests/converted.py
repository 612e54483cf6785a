# SPDX-License-Identifier: MIT OR Apache-2.0
"""Tests of nmsfilter.convert: pycocotools, motmetrics and supervision read what it writes.

Runs with a Python that has these, without the package: converted.py.
"""

import contextlib
import io
import json
import pathlib
import re
import subprocess
import sys
import tempfile
import unittest

import motmetrics
import numpy
import supervision
from pycocotools import mask as coco_mask
from pycocotools.coco import COCO
from pycocotools.cocoeval import COCOeval

# motmetrics 1.4 calls this function, which NumPy 2 does not have.
numpy.asfarray = lambda numbers: numpy.asarray(numbers, float)

PROJECT = pathlib.Path(__file__).resolve().parent.parent.parent
CONVERT = PROJECT / "python/nmsfilter/convert.py"

SIZE = (64, 48)
# COCO's numbers are neither the classes of models nor without gaps.
CATEGORIES = {"person": 1, "car": 3, "traffic light": 10}


def found(label, class_, box, score, **others):
    """An object with a box of left, top, right and bottom, as detectionjson writes it."""
    edges = zip(("x_min", "y_min", "x_max", "y_max"), box, SIZE * 2)
    bounding_box = {name: edge / side for name, edge, side in edges}
    x, y, right, bottom = (round(edge) for edge in box)
    detection = {"bounding_box": bounding_box, "confidence": score, "label_id": class_, "label": label}
    place = {"x": x, "y": y, "w": right - x, "h": bottom - y, "region_id": 1, "roi_type": label}
    return {**place, "detection": detection, **others}


def frame(index, objects, **others):
    return {"resolution": {"width": SIZE[0], "height": SIZE[1]}, "index": index, **others, "objects": objects}


def disc(x, y):
    return (x - 5) ** 2 + (y - 4) ** 2 < 14


# A mask of 10x8 pixels, on a part of the frame that goes beyond its right edge.
MASK_PLACE = (40.5, 10.25, 30.0, 20.0)
BITS = [[disc(x + 0.5, y + 0.5) for x in range(10)] for y in range(8)]


def runs(bits):
    lengths, value = [0], False
    for bit in (bit for row in bits for bit in row):
        if bit != value:
            lengths.append(0)
            value = bit
        lengths[-1] += 1
    return lengths


def pixels_of_mask():
    """The pixels of the frame whose centers lie on set pixels of the mask, by definition."""
    left, top, width, height = MASK_PLACE
    pixels = numpy.zeros((SIZE[1], SIZE[0]), numpy.uint8)
    for y in range(SIZE[1]):
        for x in range(SIZE[0]):
            column, row = (x + 0.5 - left) / width * 10, (y + 0.5 - top) / height * 8
            pixels[y, x] = 0 <= column < 10 and 0 <= row < 8 and BITS[int(row)][int(column)]
    return pixels


class Converted(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = pathlib.Path(folder.name)

    def convert(self, format_, lines, *options):
        """Returns the path of the output, and the error."""
        text = "".join(json.dumps(line) + "\n" for line in lines)
        (self.folder / "lines").write_text(text)
        command = [sys.executable, CONVERT, format_, self.folder / "lines", self.folder / "out", *options]
        return self.folder / "out", subprocess.run(command, capture_output=True, text=True).stderr

    def annotations(self, *truth):
        """Writes COCO's annotations with two pictures; `truth` has pairs of picture and annotation."""
        images = [
            {"id": 139, "file_name": "val/a b.jpg", "width": SIZE[0], "height": SIZE[1]},
            {"id": 7, "file_name": "c.jpg", "width": SIZE[0], "height": SIZE[1]},
        ]
        categories = [{"id": number, "name": name} for name, number in CATEGORIES.items()]
        fields = [{"iscrowd": 0, "id": index, "image_id": image, **one} for index, (image, one) in enumerate(truth, 1)]
        path = self.folder / "annotations.json"
        path.write_text(json.dumps({"info": {}, "images": images, "categories": categories, "annotations": fields}))
        return path

    def precision(self, annotations, results, kind):
        with contextlib.redirect_stdout(io.StringIO()):
            truth = COCO(annotations)
            evaluation = COCOeval(truth, truth.loadRes(str(results)), kind)
            evaluation.evaluate()
            evaluation.accumulate()
            evaluation.summarize()
        return evaluation.stats[0]

    def test_coco_evaluates_boxes_masks_and_keypoints(self):
        pixels = pixels_of_mask()
        self.assertGreater(pixels[:, -1].sum(), 0, "the mask ends at the edge")
        points = [[10.25 + index, 20.5, 2] for index in range(17)]
        segmentation = coco_mask.encode(numpy.asfortranarray(pixels))
        area = float(pixels.sum())
        segmentation["counts"] = segmentation["counts"].decode()
        full = coco_mask.encode(numpy.ones(SIZE[::-1], numpy.uint8, "F"))
        full["counts"] = full["counts"].decode()
        keypoints = {"keypoints": sum(points, []), "num_keypoints": 17}
        none = {"keypoints": [0] * 51, "num_keypoints": 0}
        annotations = self.annotations(
            (139, {"category_id": 3, "bbox": [40.5, 10.25, 23.5, 20], "area": area, "segmentation": segmentation, **none}),
            (7, {"category_id": 1, "bbox": [0, 0, 64, 48], "area": 3072, "segmentation": full, **keypoints}),
        )
        left, top, width, height = MASK_PLACE
        mask = {"x": left, "y": top, "w": width, "h": height, "width": 10, "height": 8, "runs": runs(BITS)}
        whole = {"x": 0, "y": 0, "w": 64, "h": 48, "width": 2, "height": 1, "runs": [0, 2]}
        lines = [
            frame(4, [found("car", 2, [40.5, 10.25, 64, 30.25], 0.9, mask=mask)], file="/pictures/a b.jpg"),
            frame(9, [found("person", 0, [0, 0, 64, 48], 0.8, mask=whole, keypoints={"points": points})], file="c.jpg"),
        ]
        results, error = self.convert("coco", lines, "--annotations", annotations)
        self.assertEqual(error, "")
        car, person = json.loads(results.read_text())
        self.assertEqual([car["image_id"], car["category_id"], car["score"]], [139, 3, 0.9])
        self.assertEqual(car["bbox"], [40.5, 10.25, 23.5, 20])
        numpy.testing.assert_array_equal(coco_mask.decode(car["segmentation"]), pixels)
        self.assertEqual(car["segmentation"], segmentation)
        self.assertEqual([person["image_id"], person["segmentation"]], [7, full])
        for kind in ("bbox", "segm"):
            self.assertAlmostEqual(self.precision(annotations, results, kind), 1, msg=kind)
        results.write_text(json.dumps([person]))
        self.assertAlmostEqual(self.precision(annotations, results, "keypoints"), 1)
        # A list of names replaces the file.
        (self.folder / "names").write_text("0.jpg\nc.jpg\n")
        options = "--annotations", annotations, "--pictures", self.folder / "names"
        results, _ = self.convert("coco", [frame(1, [found("person", 0, [0, 0, 9, 9], 0.5)], file="x.mp4")], *options)
        self.assertEqual(json.loads(results.read_text())[0]["image_id"], 7)

    def test_motmetrics_reads_tracks(self):
        def lines(moved):
            boxes = [(5, [10.5 + 3 * index, 4, 20.5 + 3 * index, 30]) for index in range(4)]
            return [frame(index, [found("car", 2, box, 0.5, id=id_ + moved)]) for index, (id_, box) in enumerate(boxes)]

        # The first pixel of a frame has the position 1, 1.
        truth = self.folder / "truth"
        truth.write_text("".join(f"{n + 1},1,{11.5 + 3 * n},5,10,26,1,-1,-1,-1\n" for n in range(4)))
        for ids, switches in (((0, 0, 0, 0), 0), ((0, 0, 8, 8), 1)):
            tracked = [lines(id_)[index] for index, id_ in enumerate(ids)]
            tracked[0]["objects"].append(found("car", 2, [0, 0, 5, 5], 0.5))
            tracks, error = self.convert("mot", tracked)
            self.assertEqual(error, "")
            read = [motmetrics.io.loadtxt(file, fmt="mot15-2D") for file in (truth, tracks)]
            columns = ["X", "Y", "Width", "Height"]
            self.assertEqual(read[1][columns].values.tolist(), read[0][columns].values.tolist())
            compared = motmetrics.utils.compare_to_groundtruth(*read, "iou", distth=0.5)
            metrics = motmetrics.metrics.create()
            row = metrics.compute(compared, metrics=["mota", "num_switches", "num_objects"])
            self.assertEqual(row.values.tolist(), [[1 - switches / 4, switches, 4]])

    def test_kitti_has_a_file_for_each_picture(self):
        items = [found("traffic light", 9, [1.25, 2, 30, 40.5], 0.75)]
        folder, error = self.convert("kitti", [frame(0, items, file="/p/7.png"), frame(1, [], file="/p/8.png")])
        self.assertEqual(error, "")
        texts = {path.name: path.read_text() for path in folder.iterdir()}
        expected = "traffic_light -1 -1 -10 1.25 2.00 30.00 40.50 -1 -1 -1 -1000 -1000 -1000 -10 0.75\n"
        self.assertEqual(texts, {"7.txt": expected, "8.txt": ""})

    def test_supervision_takes_the_lines_of_the_document(self):
        [page] = (PROJECT / "docs").rglob("results.md")
        [program] = re.findall(r"```python\n(.*?supervision.*?)```", page.read_text(), re.DOTALL)
        items = [found("car", 2, [10.4, 4, 20.6, 30], 0.5, id=8), found("person", 0, [1, 2, 3, 4], 0.25, id=9)]
        names = {"json": json, "numpy": numpy, "supervision": supervision, "line": json.dumps(frame(0, items))}
        exec(program, names)
        detections = names["detections"]
        self.assertEqual(detections.xyxy.tolist(), [[10, 4, 21, 30], [1, 2, 3, 4]])
        self.assertEqual(detections.confidence.tolist(), [0.5, 0.25])
        self.assertEqual(detections.class_id.tolist(), [2, 0])
        self.assertEqual(detections[detections.confidence > 0.3].tracker_id.tolist(), [8])

    def test_what_would_be_wrong_is_refused(self):
        item = found("car", 2, [1, 2, 3, 4], 0.5)
        unnamed, unsure = json.loads(json.dumps([item, item]))
        del unnamed["detection"]["label"]
        unsure["detection"]["confidence"] = None
        coco = "coco", "--annotations", self.annotations()
        other_size = {**frame(0, [], file="c.jpg"), "resolution": {"width": 32, "height": 24}}
        for (format_, *options), lines, expected in (
            (["mot"], [frame(0, [item])], "no object has an id; put objecttracker before detectionjson"),
            (["mot"], [frame(0, []), frame(0, [])], "two lines have one index"),
            (["mot"], [frame(0, [], source="a"), frame(0, [], source="b")], "lines of several sources"),
            (["mot"], [{"streams": []}], "line 1 is a batch of DeepStream"),
            (["mot"], [frame(0, []), {"x": 1}], "line 2: expected a line of detectionjson"),
            (["kitti"], [frame(0, [unsure], file="a.png")], "frame 0 has an object without confidence"),
            (["kitti"], [frame(0, [unnamed], file="a.png")], "an object of class 2 has no label; set label-file of nmsfilter"),
            (["kitti"], [frame(0, [])], "lines have no file; --pictures FILE"),
            (["kitti"], [frame(0, [], file="a.mp4"), frame(1, [], file="a.mp4")], "two lines are of a.mp4"),
            (coco, [frame(0, [item], file="z.jpg")], "the annotations have no picture z.jpg"),
            (coco, [frame(0, [found("cat", 1, [1, 2, 3, 4], 0.5)], file="c.jpg")], "no category 'cat'"),
            (coco, [other_size], "c.jpg was detected at [32, 24]"),
        ):
            output, error = self.convert(format_, lines, *options)
            self.assertIn(expected, error)
            self.assertNotIn("Traceback", error)
            self.assertFalse(output.exists())


unittest.main()
