#!/usr/bin/env python3
# SPDX-License-Identifier: MIT OR Apache-2.0
"""Prints the average precision of detectors that run in GStreamer's elements, and in an independent program.

Both get the pixels that GStreamer decoded. The script needs NumPy, ONNX Runtime's Python package, gst-launch-1.0 and
the plugins (GST_PLUGIN_PATH):

  accuracy.py --pictures val2017 --truth instances_val2017.json --model yolov8=yolov8n.onnx --provider cuda

The ground truth is a file in COCO's format. A model is FAMILY=FILE. The families are yolov8 (YOLOv8, YOLO11), yolov5,
yolox (exported with --decode_in_inference), yolox-raw (exported without it) and ultraface (UltraFace, RFB). All are
exported without suppression.
If a model differs from its family, for example in its mean or in the size of a dynamic input, --inference gives more
properties of ortinference. The independent program obeys these properties, too.

For each model and each of the settings, the table has rows for pictures with an odd side, for all others, and for all
pictures. AP is COCO's average precision. AP50 and AP75 are the average precisions at an overlap of 0.5 and 0.75.
Differences below 0.003 are noise.
"""

import argparse
import os
import shlex
import sys
import tempfile
from typing import NamedTuple

import onnxruntime

import chain
import ground_truth
import independent
from average_precision import average_precision


class Family(NamedTuple):
    """Properties of ortinference and of nmsfilter for a model family."""

    inference: str
    nms: str


FAMILIES = {
    "yolov8": Family("", "decoder=yolov8"),
    "yolov5": Family("input-width=640 input-height=640", "decoder=yolov5"),
    "yolox": Family("range=0,255 channel-order=bgr letterbox=top-left", "decoder=yolox"),
    "yolox-raw": Family("range=0,255 channel-order=bgr letterbox=top-left", "decoder=yolox-raw"),
    "ultraface": Family("range=-1,1", "decoder=ultraface"),
}
# Settings with which the authors of these families evaluate, and the elements' defaults.
SETTINGS = {
    "authors": "multi-label=true score-threshold=0.001 iou-threshold=0.7 max-detections=300",
    "defaults": "",
}
# Number of pictures per run of gst-launch-1.0.
RUN = 128


def pair(text):
    """Splits NAME=TEXT."""
    name, separator, rest = text.partition("=")
    if not separator:
        raise argparse.ArgumentTypeError(f"expected NAME=VALUE, got {text!r}")
    return name, rest


def model(text):
    family, path = pair(text)
    if family not in FAMILIES:
        raise argparse.ArgumentTypeError(f"expected one of {', '.join(FAMILIES)} before '=', got {family!r}")
    if not os.path.exists(path):
        raise argparse.ArgumentTypeError(f"{path} does not exist")
    return family, path


def options():
    raw = argparse.RawDescriptionHelpFormatter
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=raw)
    parser.add_argument("--pictures", required=True, help="folder of the pictures")
    parser.add_argument("--truth", required=True, help="file of ground truth in COCO's format")
    parser.add_argument("--model", type=model, action="append", required=True, metavar="FAMILY=FILE")
    parser.add_argument("--inference", default="", help="further properties of ortinference")
    parser.add_argument("--provider", choices=independent.PROVIDERS, default="cpu", help="also nmsfilter's backend")
    parser.add_argument(
        "--settings", type=pair, action="append", metavar="NAME=PROPERTIES",
        help="properties of nmsfilter (default: the authors' and the defaults)",
    )
    parser.add_argument("--first", type=int, help="use only so many pictures")
    parser.add_argument(
        "--gst-launch", default="gst-launch-1.0", metavar="COMMAND", help="such as 'folder/run gst-launch-1.0'"
    )
    return parser.parse_args()


def values(properties):
    """Returns a dictionary of properties."""
    return dict(word.split("=", 1) for word in properties.split())


def detections(given, pictures, family, path, settings):
    """Returns the detections of the elements and of the independent program in each picture, for each of the settings."""
    inference = f"{FAMILIES[family].inference} {given.inference}"
    detector = independent.Detector(path, family, values(inference), given.provider)
    words = [f"model={path}", f"provider={given.provider}", *inference.split()]
    if "ORT_DYLIB_PATH" not in os.environ:
        words.append(f"library={os.path.dirname(onnxruntime.__file__)}")
    filters = [[f"backend={given.provider}", *FAMILIES[family].nms.split(), *text.split()] for _, text in settings]
    results = [([], []) for _ in settings]
    for start in range(0, len(pictures), RUN):
        part = pictures[start : start + RUN]
        with tempfile.TemporaryDirectory() as folder:
            by_elements = chain.run(shlex.split(given.gst_launch), part, words, filters, folder)
            for (elements, _), found in zip(results, by_elements):
                elements.extend(found)
            for number, picture in enumerate(part):
                boxes, scores = detector.outputs(chain.pixels(folder, number, picture.size))
                for (_, other), (_, text) in zip(results, settings):
                    other.append(independent.select(boxes, scores, picture.size, values(text)))
    return results


def print_rows(what, pictures, chains):
    """Prints rows of the table for odd sizes, even sizes, and all sizes."""
    is_odd = [any(side % 2 for side in picture.size) for picture in pictures]
    kinds = {"odd": is_odd, "even": [not odd for odd in is_odd], "all": [True] * len(pictures)}
    for kind, chosen in kinds.items():
        def those(rows):
            return [row for row, use in zip(rows, chosen) if use]

        truths = those([picture.boxes for picture in pictures])
        if not truths:
            continue
        precisions = [average_precision(those(found), truths) for found in chains]
        cells = [f"{number:.4f}" for precision in precisions for number in precision]
        print("|", " | ".join([what, f"{len(truths)} {kind}", *cells]), "|", flush=True)


def main():
    given = options()
    settings = given.settings or list(SETTINGS.items())
    try:
        pictures = ground_truth.read(given.truth, given.pictures)[: given.first]
        print("| model, settings | pictures | elements: AP | AP50 | AP75 | independent: AP | AP50 | AP75 |")
        print("| --- | --- | --- | --- | --- | --- | --- | --- |", flush=True)
        for family, path in given.model:
            results = detections(given, pictures, family, path, settings)
            for (name, _), chains in zip(settings, results):
                print_rows(f"{os.path.basename(path)}, {name}", pictures, chains)
    except (ground_truth.TruthError, chain.ChainError, independent.ProviderError, OSError) as error:
        sys.exit(f"accuracy.py: {error}")


if __name__ == "__main__":
    main()
