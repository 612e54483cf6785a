#!/usr/bin/env python3
# SPDX-License-Identifier: MIT OR Apache-2.0
"""Prints what a detector finds in a picture as a whole and in 4, 16 and 64 tiles, in GStreamer's elements and in SAHI.

  tile_counts.py --picture street.png --model yolov8=yolov8n.onnx

Needs gst-launch-1.0, the plugins (GST_PLUGIN_PATH) and the Python packages sahi (0.12.6), shapely, onnxruntime and
opencv-python-headless. The model is FAMILY=FILE as in accuracy.py. Tiles overlap by a fifth, and the whole frame is one
more region. Both programs get the same pixels.

For each rule, the first table has the numbers of detections, and how many are equal in both programs; the detections
with more than half of their area in a detection of a higher score and of the same class; and the part of these of which
either box ends within 2 pixels of an inner edge of a tile: duplicates at seams. `covered` is the number of the whole
frame's detections that have an IoU of a half or more with a detection of the same class.

The second table has times of a frame in milliseconds (medians): ortinference (crop and model) and nmsfilter (decode,
suppression and metadata) with each rule; and SAHI's crop, preparation of the model's input (OpenCV), model, rest of its
prediction, and merging. SAHI's model suppresses the boxes of a slice first, as the models that it comes with.
"""

import argparse
import math
import os
import re
import shlex
import statistics
import subprocess
import tempfile
import time
from types import SimpleNamespace

import cv2
import numpy as np
import onnxruntime

import accuracy
import chain
import independent
import sliced
from sliced import RULES

SIDES = (1, 2, 4, 8)
OVERLAP = 0.2
# Distance in pixels at which a box ends at the edge of a tile.
NEAR = 2


class TimedDetector(independent.Detector):
    """Prepares the model's input with OpenCV, and adds up the times in seconds."""

    def clear(self):
        self.preparation = self.model = 0.0

    def prepare(self, picture):
        began = time.perf_counter()
        ratio = min(self.size[0] / picture.shape[1], self.size[1] / picture.shape[0])
        width, height = (max(round(side * ratio), 1) for side in picture.shape[1::-1])
        left, top = (self.size[0] - width) // 2, (self.size[1] - height) // 2
        canvas = np.full((self.size[1], self.size[0], 3), independent.BORDER, np.uint8)
        cv2.resize(picture, (width, height), dst=canvas[top : top + height, left : left + width])
        gain = (self.high - self.low) / 255
        values = cv2.dnn.blobFromImage(canvas, gain, mean=(-self.low / gain,) * 3)
        values = values.astype(independent.TYPES[self.input.type], copy=False)
        self.preparation += time.perf_counter() - began
        return values, np.array([ratio, ratio]), np.array([left, top])

    def run(self, values):
        began = time.perf_counter()
        outputs = super().run(values)
        self.model += time.perf_counter() - began
        return outputs


def options():
    raw = argparse.RawDescriptionHelpFormatter
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=raw)
    parser.add_argument("--picture", required=True, help="PNG or JPEG")
    parser.add_argument("--model", type=accuracy.model, required=True, metavar="FAMILY=FILE")
    parser.add_argument("--frames", type=int, default=5, help="number of repetitions, of which the median is printed")
    parser.add_argument("--gst-launch", default="gst-launch-1.0", metavar="COMMAND")
    return parser.parse_args()


def tile_side(pixels, count):
    """Returns the least side with which so many overlapping tiles cover these pixels."""
    side = math.ceil(pixels / (count - (count - 1) * OVERLAP))
    while side + (count - 1) * (side - int(side * OVERLAP)) < pixels:
        side += 1
    return side


def inner_edges(pixels, side):
    """Returns the edges of tiles along an axis, without the frame's."""
    step = side - int(side * OVERLAP)
    starts = [*range(0, pixels - side, step), pixels - side]
    return np.array([edge for start in starts for edge in (start, start + side) if 0 < edge < pixels])


def run_elements(given, words, nms, folder):
    """Returns the detections of each rule, and the medians of the times of ortinference and of each nmsfilter in ms."""
    pipeline = ["filesrc", f"location={given.picture}", "!", *chain.decoder(given.picture), "!", "videoconvert"]
    pipeline += ["!", "video/x-raw,format=RGB", "!", "imagefreeze", f"num-buffers={given.frames}", "!", "tee"]
    pipeline += ["name=pixels", "!", "ortinference", "name=inference", *words, "!", "tee", "name=tensors"]
    for number, rule in enumerate(RULES):
        pipeline += ["tensors.", "!", "nmsfilter", f"name=rule{number}", *nms, *rule.properties.split()]
        pipeline += ["!", "detectionjson", "!", "filesink", "async=false", f"location={folder}/{number}.ndjson"]
    pipeline += ["pixels.", "!", "multifilesink", "async=false", f"location={folder}/%05d.rgb"]
    ended = subprocess.run([*shlex.split(given.gst_launch), "-m", *pipeline], capture_output=True, text=True)
    if ended.returncode != 0:
        raise SystemExit(f"gst-launch-1.0 failed:\n{ended.stderr}")
    times = dict(re.findall(r'from element "(\w+)" .*-stats,.*?time-p50=\(guint64\)(\d+)', ended.stdout))
    found = []
    for number in range(len(RULES)):
        with open(f"{folder}/{number}.ndjson", encoding="utf-8") as file:
            found.append(chain.detections(file.readline(), SimpleNamespace(path=given.picture, size=given.size)))
    return found, {name: int(nanoseconds) / 1e6 for name, nanoseconds in times.items()}


def duplicates(found, edges):
    """Returns the number of detections mostly in a better one of their class, and how many of these are at a seam."""
    found = found[np.argsort(-found[:, 5], kind="stable")]
    boxes = found[:, 1:5]
    areas = np.prod(boxes[:, 2:] - boxes[:, :2], axis=1)
    ends = np.zeros(len(found), bool)
    for axis in (0, 1):
        for edge in (boxes[:, axis], boxes[:, axis + 2]):
            ends |= (np.abs(edge[:, None] - edges[axis]) <= NEAR).any(axis=1)
    inside = at_seam = 0
    for number in range(1, len(found)):
        sides = np.minimum(boxes[:number, 2:], boxes[number, 2:]) - np.maximum(boxes[:number, :2], boxes[number, :2])
        shared = np.prod(sides.clip(0), axis=1)
        better = (shared > areas[number] / 2) & (found[:number, 0] == found[number, 0])
        inside += better.any()
        at_seam += (better & (ends[:number] | ends[number])).any()
    return inside, at_seam


def ious(box, boxes):
    sides = np.minimum(boxes[:, 2:], box[2:]) - np.maximum(boxes[:, :2], box[:2])
    shared = np.prod(sides.clip(0), axis=1)
    return shared / (np.prod(boxes[:, 2:] - boxes[:, :2], axis=1) + np.prod(box[2:] - box[:2]) - shared)


def covered(these, others):
    """Returns how many detections have an IoU of at least a half with one of the same class."""
    return sum((ious(one[1:5], others[others[:, 0] == one[0], 1:5]) >= 0.5).any() for one in these)


def sahi_times(detector, pixels, slices, repetitions):
    """Returns the medians of SAHI's times in ms: crop, the model's input, model, rest of its prediction, merging."""
    model = sliced.SlicedModel(detector, remembers=False)
    model.by_slice = True
    runs = []
    for _ in range(repetitions):
        detector.clear()
        _, spent = sliced.predict(model, pixels, slices, sliced.MERGING)
        rest = spent["prediction"] - detector.preparation - detector.model
        runs.append([spent["slice"], detector.preparation, detector.model, rest, spent["postprocess"]])
    return [statistics.median(column) * 1e3 for column in zip(*runs)]


def compare(given, side, detector, whole):
    """Returns the rows of both tables for side x side tiles. `whole` has the whole frame's detections for each rule."""
    family, path = given.model
    properties = accuracy.FAMILIES[family]
    width, height = slices = [tile_side(pixels, side) for pixels in given.size]
    words = [f"model={path}", "provider=cpu", *properties.inference.split()]
    if "ORT_DYLIB_PATH" not in os.environ:
        words.append(f"library={os.path.dirname(onnxruntime.__file__)}")
    name, edges = "the frame", [np.empty(0)] * 2
    if side > 1:
        name, edges = f"{side * side}, {width}x{height}", [inner_edges(*pair) for pair in zip(given.size, slices)]
        words += ["regions=tiles", f"tile-width={width}", f"tile-height={height}", f"tile-overlap={OVERLAP}"]
    nms = ["backend=cpu", *properties.nms.split(), f"score-threshold={sliced.SCORE_THRESHOLD}"]
    with tempfile.TemporaryDirectory() as folder:
        elements, times = run_elements(given, words, nms, folder)
        pixels = chain.pixels(folder, 0, given.size)

    model = sliced.SlicedModel(detector, remembers=True)
    detector.clear()
    counts = []
    for rule, found in zip(RULES, elements):
        baseline = whole.setdefault(rule.name, found)
        cells = [name, rule.name, len(found), "", ""]
        if rule.sahi:
            other, _ = sliced.predict(model, pixels, (*slices, OVERLAP), rule)
            cells[3:] = len(other), sliced.equal(found, other)
        counts.append([*cells, *duplicates(found, edges), f"{covered(baseline, found)} of {len(baseline)}"])

    filters = [times[f"rule{number}"] for number in range(len(RULES))]
    cells = [f"{number:.2f}" for number in (times["inference"], *filters)]
    cells.append(f"{max(filters) / (max(filters) + times['inference']):.1%}")
    sahi = sahi_times(detector, pixels, (*slices, OVERLAP), given.frames)
    return counts, [name, *cells, *(f"{number:.1f}" for number in sahi), f"{sahi[-1] / sum(sahi):.1%}"]


def print_table(titles, rows):
    print("|", " | ".join(titles), "|\n|" + " --- |" * len(titles))
    for cells in rows:
        print("|", " | ".join(map(str, cells)), "|")


def main():
    given = options()
    family, path = given.model
    given.size = cv2.imread(given.picture).shape[1::-1]
    detector = TimedDetector(path, family, accuracy.values(accuracy.FAMILIES[family].inference), "cpu")
    whole = {}
    tables = [compare(given, side, detector, whole) for side in SIDES]
    titles = ["tiles", "rule", "elements", "SAHI", "equal", "inside another", "at a seam", "covered"]
    print_table(titles, [row for counts, _ in tables for row in counts])
    titles = ["tiles", "ortinference", *(rule.name for rule in RULES), "share"]
    print()
    print_table([*titles, "SAHI: crop", "input", "model", "rest", "merge", "share"], [speeds for _, speeds in tables])


if __name__ == "__main__":
    main()
