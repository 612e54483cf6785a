# SPDX-License-Identifier: MIT OR Apache-2.0
"""Runs pictures through GStreamer's decoder, ortinference, nmsfilter and detectionjson.

The pixels of each decoded picture are also written to a file, so that another program can read the pixels that the
elements received. They are RGB, in rows that are padded to a multiple of 4 bytes.
"""

import json
import os
import subprocess
import sys

import numpy as np

# Each picture has its own source and decoder, since a decoder that gets several files in turn can lose some.
DECODERS = {".jpg": "jpegdec idct-method=islow", ".jpeg": "jpegdec idct-method=islow", ".png": "pngdec"}


class ChainError(Exception):
    """The pipeline failed, or lost a picture."""


def decoder(path):
    """Returns the description of the decoder for this file, split into words."""
    ending = os.path.splitext(path)[1].lower()
    if ending not in DECODERS:
        raise ChainError(f"{path}: expected a picture whose name ends in {', '.join(DECODERS)}")
    return DECODERS[ending].split()


def words(pictures, inference, filters, folder):
    """Returns the arguments for gst-launch-1.0. `filters` has the properties of each nmsfilter."""
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
    """Returns the detections as rows of class, left, top, right, bottom, score, in pixels."""
    line = json.loads(line)
    size = line["resolution"]["width"], line["resolution"]["height"]
    if size != picture.size:
        raise ChainError(f"{picture.path}: decoded as {size}, but the ground truth has {picture.size}")
    rows = []
    for found in (entry["detection"] for entry in line["objects"]):
        # This box is exact, while x, y, w and h are rounded to whole pixels.
        box = found["bounding_box"]
        corners = [box["x_min"] * size[0], box["y_min"] * size[1], box["x_max"] * size[0], box["y_max"] * size[1]]
        rows.append([found["label_id"], *corners, found["confidence"]])
    return np.array(rows, float).reshape(-1, 6)


def read(pictures, filters, folder):
    """Reads the detections of each filter in each picture, after the pipeline with these filters has run."""
    results = []
    for number in range(filters):
        with open(f"{folder}/{number}.ndjson", encoding="utf-8") as file:
            lines = file.readlines()
        if len(lines) != len(pictures):
            raise ChainError(f"{len(lines)} of {len(pictures)} pictures from {pictures[0].path} on were decoded; expected files that gst-launch-1.0 decodes")
        results.append([detections(line, picture) for line, picture in zip(lines, pictures)])
    return results


def run(command, pictures, inference, filters, folder):
    """Returns the detections of each filter in each picture. Writes the pixels to `folder`, where `pixels` reads them."""
    ended = subprocess.run([*command, "-q", *words(pictures, inference, filters, folder)], capture_output=True, text=True)
    if ended.returncode != 0 or "ERROR" in ended.stderr:
        raise ChainError(f"gst-launch-1.0 failed:\n{ended.stderr}")
    if ended.stderr:
        print(ended.stderr, end="", file=sys.stderr)
    return read(pictures, len(filters), folder)


def pixels(folder, number, size):
    """Reads a decoded picture as an array of height x width x 3."""
    width, height = size
    rows = np.fromfile(f"{folder}/{number:05d}.rgb", np.uint8).reshape(height, -1)
    return rows[:, : 3 * width].reshape(height, width, 3)
