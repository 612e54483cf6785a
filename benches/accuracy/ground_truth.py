# SPDX-License-Identifier: MIT OR Apache-2.0
"""Reads a file of ground truth in COCO's JSON format.

`images` have `id`, `file_name`, `width` and `height`. `annotations` have `image_id`, `category_id` and `bbox` (left,
top, width and height in pixels); `iscrowd` is 1 for a region with many objects. `categories` have `id`. COCO's 80
classes are categories with ids from 1 to 90 with gaps, so a model's class is the index of its category by ascending id.
"""

import json
import os
from typing import NamedTuple

import numpy as np


class Picture(NamedTuple):
    """A picture: its file, width and height, and its boxes as rows of class, left, top, right, bottom, crowd."""

    path: str
    size: tuple
    boxes: np.ndarray


class TruthError(Exception):
    """The file cannot be used."""


def read(path, folder):
    """Returns the pictures by ascending id. Their files are in `folder`."""
    with open(path, encoding="utf-8") as file:
        truth = json.load(file)
    lists = ("images", "annotations", "categories")
    if not isinstance(truth, dict) or not all(isinstance(truth.get(name), list) for name in lists):
        raise TruthError(f"{path}: expected COCO's JSON, an object with the lists {', '.join(lists)}")
    try:
        return pictures(truth, folder)
    except KeyError as error:
        raise TruthError(f"{path}: an entry refers to {error}, or lacks it; expected COCO's fields") from error


def pictures(truth, folder):
    classes = {number: place for place, number in enumerate(sorted(c["id"] for c in truth["categories"]))}
    boxes = {image["id"]: [] for image in truth["images"]}
    for entry in truth["annotations"]:
        left, top, width, height = entry["bbox"]
        row = [classes[entry["category_id"]], left, top, left + width, top + height, entry.get("iscrowd", 0)]
        boxes[entry["image_id"]].append(row)
    found = []
    for image in sorted(truth["images"], key=lambda image: image["id"]):
        path = os.path.join(folder, image["file_name"])
        if not os.path.exists(path):
            raise TruthError(f"{path} does not exist; the file of ground truth names it")
        rows = np.array(boxes[image["id"]], float).reshape(-1, 6)
        found.append(Picture(path, (image["width"], image["height"]), rows))
    return found
