#!/usr/bin/env python3
# SPDX-License-Identifier: MIT OR Apache-2.0
"""Prints the average precision of small objects with and without tiles, in GStreamer's elements and in SAHI.

Both get the pixels that GStreamer decoded. SAHI runs the model with NumPy and ONNX Runtime (independent.py). The script
needs gst-launch-1.0, the plugins (GST_PLUGIN_PATH) and the Python packages sahi (0.12.6), shapely and onnxruntime:

  small_objects.py --pictures val2017 --truth instances_val2017.json --model yolov8=yolov8n.onnx --tile 320x320

The model is FAMILY=FILE as in accuracy.py. Small objects have at most 32 x 32 pixels (COCO's rule), by their boxes.
`equal` is the number of detections that are equal in both programs: class, score within 0.02, edges within 1 pixel and a
fiftieth of the longer side. "by slice" is SAHI with the models that it comes with: they suppress the boxes of each slice
first, by an IoU of 0.7, and clip them to the slice. The other rows of SAHI have the elements' rules.
"""

import argparse
import os
import shlex
import sys
import tempfile
from typing import NamedTuple

import numpy as np
import onnxruntime

import accuracy
import chain
import ground_truth
import independent
import sahi_model
from average_precision import SMALL, average_precision

THRESHOLD = 0.25
SCORE_TOLERANCE, EDGE_TOLERANCE = 0.02, (1.0, 0.02)
# Number of pictures per run of gst-launch-1.0.
RUN = 32


class Rule(NamedTuple):
    """A rule for boxes of several slices: properties of nmsfilter, and arguments of SAHI."""

    name: str
    properties: str
    sahi: tuple


RULES = [
    Rule("IoU 0.45", "threshold-inclusive=true", ("NMS", "IOU", 0.45)),
    Rule("smaller 0.5", "overlap=smaller iou-threshold=0.5 threshold-inclusive=true", ("NMS", "IOS", 0.5)),
    Rule(
        "merge, smaller 0.5", "method=merge overlap=smaller iou-threshold=0.5 threshold-inclusive=true lose-released=true",
        ("GREEDYNMM", "IOS", 0.5),
    ),
]


def size(text):
    try:
        width, height = map(int, text.split("x"))
    except ValueError as error:
        raise argparse.ArgumentTypeError(f"expected WIDTHxHEIGHT, got {text!r}") from error
    return width, height


def options():
    raw = argparse.RawDescriptionHelpFormatter
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=raw)
    parser.add_argument("--pictures", required=True, help="folder of the pictures")
    parser.add_argument("--truth", required=True, help="file of ground truth in COCO's format")
    parser.add_argument("--model", type=accuracy.model, required=True, metavar="FAMILY=FILE")
    parser.add_argument("--tile", type=size, required=True, metavar="WIDTHxHEIGHT")
    parser.add_argument("--overlap", type=float, default=0.2, help="of tiles, as a fraction of their side")
    parser.add_argument("--first", type=int, help="use only so many pictures")
    parser.add_argument("--gst-launch", default="gst-launch-1.0", metavar="COMMAND")
    return parser.parse_args()


def equal(these, others):
    """Returns the number of detections with an equal one in `others`. Each of `others` is used only once."""
    pixels, part = EDGE_TOLERANCE
    left, count = others.copy(), 0
    for one in these:
        side = max(one[3] - one[1], one[4] - one[2])
        near = (left[:, 0] == one[0]) & (np.abs(left[:, 5] - one[5]) <= SCORE_TOLERANCE)
        near &= np.abs(left[:, 1:5] - one[1:5]).max(axis=1) <= pixels + part * side
        if near.any():
            left = np.delete(left, near.argmax(), axis=0)
            count += 1
    return count


def main():
    given = options()
    family, path = given.model
    properties = accuracy.FAMILIES[family]
    width, height = given.tile
    pictures = ground_truth.read(given.truth, given.pictures)[: given.first]
    truths = [picture.boxes for picture in pictures]
    inference = [f"model={path}", "provider=cpu", *properties.inference.split()]
    if "ORT_DYLIB_PATH" not in os.environ:
        inference.append(f"library={os.path.dirname(onnxruntime.__file__)}")
    tiles = ["regions=tiles", f"tile-width={width}", f"tile-height={height}", f"tile-overlap={given.overlap}"]
    nms = ["backend=cpu", *properties.nms.split(), f"score-threshold={THRESHOLD}"]
    filters = [[*nms, *rule.properties.split()] for rule in RULES]
    detector = independent.Detector(path, family, accuracy.values(properties.inference), "cpu")
    model = sahi_model.SlicedModel(detector, THRESHOLD)
    slices = width, height, given.overlap
    candidates = {"score-threshold": THRESHOLD, "iou-threshold": 1}
    by_slice = {"score-threshold": THRESHOLD, "iou-threshold": 0.7}

    frame, elements = [], [[] for _ in RULES]
    sahi, sahi_by_slice = [[] for _ in RULES], [[] for _ in RULES]
    for start in range(0, len(pictures), RUN):
        part = pictures[start : start + RUN]
        command = shlex.split(given.gst_launch)
        with tempfile.TemporaryDirectory() as folder:
            frame += chain.run(command, part, inference, [nms], folder)[0]
            for rows, found in zip(elements, chain.run(command, part, [*inference, *tiles], filters, folder)):
                rows += found
            for number, picture in enumerate(part):
                pixels = chain.pixels(folder, number, picture.size)
                model.outputs.clear()
                for settings, clips, results in ((candidates, False, sahi), (by_slice, True, sahi_by_slice)):
                    model.settings, model.clips = settings, clips
                    for rule, rows in zip(RULES, results):
                        rows.append(sahi_model.detections(model, pixels, slices, rule.sahi))

    def row(name, found, other=None):
        cells = [f"{n:.4f}" for area in (SMALL, np.inf) for n in average_precision(found, truths, area)]
        count = sum(map(len, found))
        same = "" if other is None else sum(map(equal, found, other))
        print("|", " | ".join([name, *cells, str(count), str(same)]), "|", flush=True)

    print("| | small: AP | AP50 | AP75 | all: AP | AP50 | AP75 | detections | equal |")
    print("| --- | --- | --- | --- | --- | --- | --- | --- | --- |")
    row("frame", frame)
    for number, rule in enumerate(RULES):
        row(f"tiles, {rule.name}", elements[number], sahi[number])
        row(f"SAHI, {rule.name}", sahi[number])
        row(f"SAHI by slice, {rule.name}", sahi_by_slice[number])


if __name__ == "__main__":
    try:
        main()
    except (ground_truth.TruthError, chain.ChainError, OSError) as error:
        sys.exit(f"small_objects.py: {error}")
