#!/usr/bin/env python3
# SPDX-License-Identifier: MIT OR Apache-2.0
"""Prints the average precision of small objects with and without tiles, in GStreamer's elements and in SAHI.

Both get the pixels that GStreamer decoded. SAHI runs the model with NumPy and ONNX Runtime (independent.py). The script
needs gst-launch-1.0, the plugins (GST_PLUGIN_PATH) and the Python packages sahi (0.12.6), shapely and onnxruntime:

  small_objects.py --pictures val2017 --truth instances_val2017.json --model yolov8=yolov8n.onnx --tile 320x320

mosaic.py makes large pictures. The model is FAMILY=FILE as in accuracy.py. Small objects have boxes of at most 32 x 32
pixels (COCO's rule). `equal` is the number of detections that are equal in both programs: class, score within 0.02,
edges within 1 pixel and a fiftieth of the longer side. "by slice" is SAHI with the models that it comes with: they
suppress the boxes of each slice first, by an IoU of 0.7, and clip them to the slice. The other rows of SAHI have the
elements' rules.
"""

import argparse
import os
import shlex
import sys
import tempfile

import numpy as np
import onnxruntime

import accuracy
import chain
import ground_truth
import independent
import sliced
from average_precision import SMALL, average_precision
from sliced import RULES

# Number of pictures per run of gst-launch-1.0.
RUN = 32


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
    parser.add_argument("--inference", default="", help="further properties of ortinference")
    parser.add_argument("--tile", type=size, required=True, metavar="WIDTHxHEIGHT")
    parser.add_argument("--overlap", type=float, default=0.2, help="of tiles, as a fraction of their side")
    parser.add_argument("--first", type=int, help="use only so many pictures")
    parser.add_argument("--gst-launch", default="gst-launch-1.0", metavar="COMMAND")
    return parser.parse_args()


def detections(given, pictures):
    """Returns the detections in each picture.

    These are the detections of the elements without tiles; and by rule, of the elements with tiles, of SAHI, and of
    SAHI by slice.
    """
    family, path = given.model
    properties = accuracy.FAMILIES[family]
    inference = f"{properties.inference} {given.inference}"
    words = [f"model={path}", "provider=cpu", *inference.split()]
    if "ORT_DYLIB_PATH" not in os.environ:
        words.append(f"library={os.path.dirname(onnxruntime.__file__)}")
    slices = *given.tile, given.overlap
    tiles = ["regions=tiles", *map("=".join, zip(("tile-width", "tile-height", "tile-overlap"), map(str, slices)))]
    nms = ["backend=cpu", *properties.nms.split(), f"score-threshold={sliced.SCORE_THRESHOLD}"]
    filters = [[*nms, *rule.properties.split()] for rule in RULES]
    detector = independent.Detector(path, family, accuracy.values(inference), "cpu")
    model = sliced.SlicedModel(detector, remembers=True)
    command = shlex.split(given.gst_launch)

    frame = []
    elements, sahi, sahi_by_slice = ([[] for _ in RULES] for _ in range(3))
    for start in range(0, len(pictures), RUN):
        part = pictures[start : start + RUN]
        with tempfile.TemporaryDirectory() as folder:
            frame += chain.run(command, part, words, [nms], folder)[0]
            for rows, found in zip(elements, chain.run(command, part, [*words, *tiles], filters, folder)):
                rows += found
            for number, picture in enumerate(part):
                pixels = chain.pixels(folder, number, picture.size)
                model.outputs.clear()
                for by_slice, results in ((False, sahi), (True, sahi_by_slice)):
                    model.by_slice = by_slice
                    for rule, rows in zip(RULES, results):
                        if rule.sahi:
                            rows.append(sliced.predict(model, pixels, slices, rule)[0])
    return frame, elements, sahi, sahi_by_slice


def print_row(name, found, truths, other=()):
    cells = [f"{n:.4f}" for area in (SMALL, np.inf) for n in average_precision(found, truths, area)]
    same = sum(map(sliced.equal, found, other)) if other else ""
    print("|", " | ".join([name, *cells, str(sum(map(len, found))), str(same)]), "|", flush=True)


def main():
    given = options()
    try:
        pictures = ground_truth.read(given.truth, given.pictures)[: given.first]
        frame, *by_rule = detections(given, pictures)
    except (ground_truth.TruthError, chain.ChainError, OSError) as error:
        sys.exit(f"small_objects.py: {error}")
    truths = [picture.boxes for picture in pictures]
    print("| | small: AP | AP50 | AP75 | all: AP | AP50 | AP75 | detections | equal |")
    print("|" + " --- |" * 9)
    print_row("frame", frame, truths)
    for rule, elements, sahi, sahi_by_slice in zip(RULES, *by_rule):
        print_row(f"tiles, {rule.name}", elements, truths, sahi)
        if rule.sahi:
            print_row(f"SAHI, {rule.name}", sahi, truths)
            print_row(f"SAHI by slice, {rule.name}", sahi_by_slice, truths)


if __name__ == "__main__":
    main()
