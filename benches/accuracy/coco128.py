#!/usr/bin/env python3
# SPDX-License-Identifier: MIT OR Apache-2.0
"""coco128.py DATA OUT.json: writes the ground truth of the recorded data (DATA/coco128.json) in COCO's format.

The classes 0 to 79 become the categories 1 to 80. The pictures are in DATA.
"""

import json
import sys


def main():
    data, out = sys.argv[1:]
    with open(f"{data}/coco128.json", encoding="utf-8") as file:
        given = json.load(file)["images"]
    images, annotations = [], []
    for number, image in enumerate(given):
        images.append({"id": number, "file_name": image["file"], "width": image["width"], "height": image["height"]})
        for kind, left, top, right, bottom, crowd, area in image["boxes"]:
            box = [left, top, right - left, bottom - top]
            entry = {"id": len(annotations) + 1, "image_id": number, "category_id": kind + 1, "bbox": box}
            annotations.append(entry | {"area": area, "iscrowd": crowd})
    categories = [{"id": number + 1} for number in range(80)]
    with open(out, "w", encoding="utf-8") as file:
        json.dump({"images": images, "annotations": annotations, "categories": categories}, file)


if __name__ == "__main__":
    main()
