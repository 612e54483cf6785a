#!/usr/bin/env python3
# SPDX-License-Identifier: MIT OR Apache-2.0
"""mosaic.py PICTURES TRUTH.json OUT: joins pictures into large ones, with their ground truth (OUT/truth.json).

Each large picture has 4 x 4 cells of 640 x 640 pixels with a picture in its own size at the top left, and is gray
elsewhere. Tiles do not end where cells end, if they overlap. Larger pictures are left out. Needs NumPy and OpenCV.
"""

import json
import os
import sys

import cv2
import numpy as np

import ground_truth

CELL, SIDE = 640, 4
GRAY = 114


def main():
    folder, truth, out = sys.argv[1:]
    pictures = [picture for picture in ground_truth.read(truth, folder) if max(picture.size) <= CELL]
    os.makedirs(out, exist_ok=True)
    images, annotations = [], []
    for start in range(0, len(pictures), SIDE * SIDE):
        canvas = np.full((CELL * SIDE, CELL * SIDE, 3), GRAY, np.uint8)
        number = len(images)
        for place, picture in enumerate(pictures[start : start + SIDE * SIDE]):
            left, top = CELL * (place % SIDE), CELL * (place // SIDE)
            width, height = picture.size
            canvas[top : top + height, left : left + width] = cv2.imread(picture.path)
            for kind, x1, y1, x2, y2, crowd in picture.boxes.tolist():
                box = [left + x1, top + y1, x2 - x1, y2 - y1]
                entry = {"id": len(annotations) + 1, "image_id": number, "category_id": int(kind) + 1, "bbox": box}
                annotations.append(entry | {"area": box[2] * box[3], "iscrowd": int(crowd)})
        name = f"{number:04d}.png"
        cv2.imwrite(os.path.join(out, name), canvas)
        images.append({"id": number, "file_name": name, "width": CELL * SIDE, "height": CELL * SIDE})
    categories = [{"id": number + 1} for number in range(80)]
    with open(os.path.join(out, "truth.json"), "w", encoding="utf-8") as file:
        json.dump({"images": images, "annotations": annotations, "categories": categories}, file)


if __name__ == "__main__":
    main()
