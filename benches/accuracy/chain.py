# SPDX-License-Identifier: MIT OR Apache-2.0
"""Runs pictures through GStreamer's decoder, ortinference, nmsfilter and detectionjson.

The pixels of each decoded picture, RGB in rows whose bytes are a multiple of 4, are written to a file, too, from which
another program reads what the elements received.
"""

import json
import os
import subprocess
import sys

import numpy as np

# A source and a decoder for each picture, since a decoder that gets one file after the other can lose some.
DECODERS = {".jpg": "jpegdec idct-method=islow", ".jpeg": "jpegdec idct-method=islow", ".png": "pngdec"}


class ChainError(Exception):
    """The pipeline failed, or lost a picture."""


def decoder(path):
    """The words of the decoder for this file."""
    ending = os.path.splitext(path)[1].lower()
    if ending not in DECODERS:
        raise ChainError(f"{path}: expected a picture whose name ends in {', '.join(DECODERS)}")
    return DECODERS[ending].split()


def words(pictures, inference, filters, folder):
    """The words of gst-launch-1.0. `filters`: the properties of each nmsfilter."""
    pipeline = ["concat", "name=pictures", "!", "tee", "name=pixels"]
    pipeline += ["pixels.", "!", "queue", "!", "multifilesink", f"location={folder}/%05d.rgb"]
    pipeline += ["pixels.", "!", "queue", "!", "ortinference", *inference, "!", "tee", "name=tensors"]
    for number, properties in enumerate(filters):
        pipeline += ["tensors.", "!", "queue", "!", "nmsfilter", *properties, "!", "detectionjson"]
        pipeline += ["!", "filesink", f"location={folder}/{number}.ndjson"]
    for picture in pictures:
        pipeline += ["filesrc", f"location={picture.path}", "!", *decoder(picture.path)]
        pipeline += ["!", "videoconvert", "!", "video/x-raw,format=RGB", "!", "pictures."]
    return pipeline


def detections(line, picture):
    """Rows of class, left, top, right, bottom, score, in pixels."""
    line = json.loads(line)
    size = line["resolution"]["width"], line["resolution"]["height"]
    if size != picture.size:
        raise ChainError(f"{picture.path}: decoded as {size}, but the ground truth has {picture.size}")
    rows = []
    for found in (entry["detection"] for entry in line["objects"]):
        # The exact box; x, y, w and h are rounded to whole pixels.
        box = found["bounding_box"]
        corners = [box["x_min"] * size[0], box["y_min"] * size[1], box["x_max"] * size[0], box["y_max"] * size[1]]
        rows.append([found["label_id"], *corners, found["confidence"]])
    return np.array(rows, float).reshape(-1, 6)


def read(pictures, filters, folder):
    """The detections of each filter on each picture, after the pipeline with so many filters has run."""
    results = []
    for number in range(filters):
        with open(f"{folder}/{number}.ndjson", encoding="utf-8") as file:
            lines = file.readlines()
        if len(lines) != len(pictures):
            raise ChainError(f"{len(lines)} of {len(pictures)} pictures from {pictures[0].path} on were decoded; expected files that gst-launch-1.0 decodes")
        results.append([detections(line, picture) for line, picture in zip(lines, pictures)])
    return results


def run(command, pictures, inference, filters, folder):
    """The detections of each filter on each picture. `folder` gets the pixels, which `pixels` reads."""
    ended = subprocess.run([*command, "-q", *words(pictures, inference, filters, folder)], capture_output=True, text=True)
    if ended.returncode != 0 or "ERROR" in ended.stderr:
        raise ChainError(f"gst-launch-1.0 failed:\n{ended.stderr}")
    if ended.stderr:
        print(ended.stderr, end="", file=sys.stderr)
    return read(pictures, len(filters), folder)


def pixels(folder, number, size):
    """The decoded picture: height x width x 3."""
    width, height = size
    rows = np.fromfile(f"{folder}/{number:05d}.rgb", np.uint8).reshape(height, -1)
    return rows[:, : 3 * width].reshape(height, width, 3)
