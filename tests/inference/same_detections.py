# SPDX-License-Identifier: MIT OR Apache-2.0
"""Compares detections of the elements and of benches/accuracy/independent.py in equal decoded pictures.

usage: same_detections.py pipeline FAMILY MODEL PICTURES FOLDER    prints the words for gst-launch-1.0, one per line
       same_detections.py compare FAMILY MODEL PICTURES FOLDER     after this pipeline has written to FOLDER

PICTURES is the folder with COCO128 in the recorded data. Its first 32 pictures are used. `compare` prints the number of
detections with a score of at least 0.25, then a line for each detection that has no counterpart on the other side. A
counterpart has the same class, and nearly equal score and box. Its score may be below 0.25.

The two sides resample with different arithmetic: the elements use integers, with positions in steps of 1/256 of a pixel,
and the independent program uses floating point. Values of the model's input differ by at most 2 of 255. This changes a
score by some thousandths, and moves an edge by a fraction of a pixel. The tolerances are several times as large, but
small enough to detect mistakes: 39 of YOLOX's detections differ if sides are rounded down to even numbers, 164 if pixels
are moved by a half, and 6 if the overlap threshold is 0.5 instead of 0.45.
"""

import json
import os
import sys
from types import SimpleNamespace

import numpy as np

sys.path.insert(0, os.path.join(os.path.dirname(__file__), "../../benches/accuracy"))
import accuracy  # noqa: E402
import chain  # noqa: E402
import independent  # noqa: E402

PICTURES = 32
THRESHOLD = 0.25
SCORE_TOLERANCE = 0.02
# In pixels, plus this fraction of the box's longer side.
EDGE_TOLERANCE = 1.0, 0.02
SETTINGS = "score-threshold=0.2"


def is_equal(one, other):
    pixels, part = EDGE_TOLERANCE
    side = max(one[3] - one[1], one[4] - one[2])
    edges = np.abs(one[1:5] - other[1:5]).max()
    return one[0] == other[0] and abs(one[5] - other[5]) <= SCORE_TOLERANCE and edges <= pixels + part * side


def without_equal(these, others):
    """Returns the detections above the threshold without a counterpart in `others`. Each of `others` is used only once."""
    left = list(others)
    missing = []
    for one in these[these[:, 5] >= THRESHOLD]:
        found = next((number for number, other in enumerate(left) if is_equal(one, other)), None)
        if found is None:
            missing.append(one)
        else:
            del left[found]
    return missing


def main():
    what, family, model, folder, work = sys.argv[1:]
    with open(f"{folder}/coco128.json", encoding="utf-8") as file:
        images = json.load(file)["images"][:PICTURES]
    pictures = [SimpleNamespace(path=f"{folder}/{i['file']}", size=(i["width"], i["height"])) for i in images]
    inference, nms = accuracy.FAMILIES[family]
    if what == "pipeline":
        words = [f"model={model}", "provider=cpu", *inference.split()]
        print("\n".join(chain.words(pictures, words, [["backend=cpu", *nms.split(), *SETTINGS.split()]], work)))
        return
    (by_elements,) = chain.read(pictures, 1, work)
    detector = independent.Detector(model, family, accuracy.values(inference), "cpu")
    count, lines = 0, []
    for number, (picture, elements) in enumerate(zip(pictures, by_elements)):
        boxes, scores = detector.outputs(chain.pixels(work, number, picture.size))
        other = independent.select(boxes, scores, picture.size, accuracy.values(SETTINGS))
        count += np.count_nonzero(elements[:, 5] >= THRESHOLD)
        for side, missing in (("elements", without_equal(elements, other)), ("independent", without_equal(other, elements))):
            lines += [f"{picture.path} {picture.size}, only {side}: {one.round(3).tolist()}" for one in missing]
    print(count, *lines, sep="\n")


main()
