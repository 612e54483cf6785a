#!/usr/bin/env python3
# SPDX-License-Identifier: MIT OR Apache-2.0
"""Compares a provider library of ONNX Runtime with the CPU provider: frames per second of ortinference, and boxes.

  benches/providers.py PICTURE... --model yolov8n.onnx --inference letterbox=center --library LIBRARY \
      --thread-option num_of_threads --threads 1 16

LIBRARY is, for example, libonnxruntime_providers_openvino_plugin.so of the Python package onnxruntime-ep-openvino.
GST_PLUGIN_PATH has the plugins nmsfilter and onnxruntime, and ORT_DYLIB_PATH names ONNX Runtime 1.24 or later. Each
picture is repeated, so that a provider which keeps an old input gives wrong boxes at the next picture. Frames per second
follow from the median time per frame in ortinference, which includes scaling. Boxes are compared with those of the CPU
provider with the first number of threads: the greatest difference of an edge, in pixels, and of a score, over boxes of
equal class with the nearest position.

Exit status: 1 if a frame has another number of boxes, or an edge differs by more than --tolerance pixels.
"""

import argparse
import json
import re
import subprocess
import sys
import tempfile


class RunError(Exception):
    """The pipeline failed."""


def run(given, properties):
    """Runs all pictures. Returns the median time per frame in nanoseconds, and the detections of each frame."""
    with tempfile.NamedTemporaryFile() as lines:
        words = ["gst-launch-1.0", "-m", "concat", "name=pictures", "!", "ortinference", f"model={given.model}"]
        words += [*given.inference.split(), *properties, "!", "nmsfilter", "backend=cpu", *given.nms.split(), "!"]
        words += ["detectionjson", "!", "filesink", f"location={lines.name}"]
        for picture in given.pictures:
            words += ["filesrc", f"location={picture}", "!", "decodebin", "!", "videoconvert", "!"]
            words += ["video/x-raw,format=RGB", "!", "imagefreeze", f"num-buffers={given.frames}", "!", "pictures."]
        done = subprocess.run(words, capture_output=True, text=True)
        # The JSON is read before the file is removed.
        frames = [json.loads(line) for line in open(lines.name)]
    median = re.search(r"ortinference-stats, .* time-p50=\(guint64\)(\d+)", done.stdout)
    if done.returncode != 0 or not median:
        raise RunError(f"{' '.join(words)}\n{done.stdout[-2000:]}{done.stderr[-2000:]}")
    expected = given.frames * len(given.pictures)
    if len(frames) != expected:
        raise RunError(f"{' '.join(words)}\nexpected {expected} frames, got {len(frames)}")
    return int(median[1]), [detections(frame) for frame in frames]


def detections(frame):
    """Returns class, edges in pixels and score of each detection."""
    width, height = frame["resolution"]["width"], frame["resolution"]["height"]
    found = [entry["detection"] for entry in frame["objects"]]
    boxes = [(one["bounding_box"], one) for one in found]
    return [
        (
            one.get("label_id"),
            [box["x_min"] * width, box["y_min"] * height, box["x_max"] * width, box["y_max"] * height],
            one["confidence"],
        )
        for box, one in boxes
    ]


def difference(expected, found):
    """Returns the greatest difference of an edge and of a score; None if the numbers of boxes of a class differ."""
    edges, scores, rest = 0.0, 0.0, list(found)
    for label, box, score in expected:
        distances = [
            (max(abs(a - b) for a, b in zip(box, other[1])), index)
            for index, other in enumerate(rest)
            if other[0] == label
        ]
        if not distances:
            return None
        distance, index = min(distances)
        scores = max(scores, abs(score - rest.pop(index)[2]))
        edges = max(edges, distance)
    return None if rest else (edges, scores)


def main():
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter, allow_abbrev=False
    )
    parser.add_argument("--model", required=True)
    parser.add_argument("--library", required=True, help="the provider library")
    parser.add_argument("--device", help="provider-device, such as cpu, gpu or npu")
    parser.add_argument("--options", default="", help="provider-options")
    parser.add_argument("--thread-option", help="the provider's option for the number of threads")
    parser.add_argument("--threads", type=int, nargs="+", default=[1, 16])
    parser.add_argument("--frames", type=int, default=200, help="frames of each picture")
    parser.add_argument("--inference", default="", help="other properties of ortinference")
    parser.add_argument("--nms", default="", help="properties of nmsfilter")
    parser.add_argument("--tolerance", type=float, default=1.0, help="pixels")
    parser.add_argument("pictures", nargs="+", metavar="PICTURE")
    given = parser.parse_args()
    plugin = ["provider=plugin", f"provider-library={given.library}"]
    plugin += [f"provider-device={given.device}"] if given.device else []
    reference, differs = None, False
    print("| provider | threads | frames/s | boxes | other frames | edge, px | score |")
    print("| --- | ---: | ---: | ---: | ---: | ---: | ---: |")
    for threads in given.threads:
        option = [f"{given.thread_option}={threads}"] if given.thread_option else []
        options = ",".join([given.options] * bool(given.options) + option)
        with_options = plugin + ([f"provider-options={options}"] if options else [])
        for name, properties in (("cpu", ["provider=cpu"]), ("plugin", with_options)):
            median, frames = run(given, [*properties, f"threads={threads}"])
            reference = reference or frames
            pairs = [difference(expected, found) for expected, found in zip(reference, frames)]
            same = [pair for pair in pairs if pair]
            edge, score = (max((pair[index] for pair in same), default=0.0) for index in (0, 1))
            other = len(pairs) - len(same)
            differs |= other > 0 or edge > given.tolerance
            boxes = sum(map(len, frames))
            print(f"| {name} | {threads} | {1e9 / median:.1f} | {boxes} | {other} | {edge:.3f} | {score:.4f} |", flush=True)
    return int(differs)


if __name__ == "__main__":
    try:
        sys.exit(main())
    except RunError as error:
        sys.exit(f"{error}")
