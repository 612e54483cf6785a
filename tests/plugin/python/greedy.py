# SPDX-License-Identifier: MIT OR Apache-2.0
"""Decodes a detector's tensors and suppresses duplicates in single precision, using only NumPy.

usage: greedy.py DECODER SCORE IOU WIDTH HEIGHT TENSOR.npy...

DECODER is ultraface (scores, then boxes), yolov8 or yolov5. An anchor is a candidate if its score is at least SCORE. A
candidate is suppressed if a surviving candidate of its class with a higher score overlaps it with an IoU above IOU.
WIDTH and HEIGHT are the size of the model's input in pixels, to which UltraFace's boxes are scaled. Prints the number of
candidates, then a line `anchor class score x1 y1 x2 y2` for each survivor, by descending score.
"""

import sys

import numpy as np


def corners(cx, cy, w, h):
    return np.stack([cx - w / 2, cy - h / 2, cx + w / 2, cy + h / 2], axis=1)


def ultraface(size, scores, boxes):
    face = scores[0, :, 1]
    return boxes[0] * np.tile(size, 2), face, np.zeros(len(face), int)


def yolov8(_, output):
    rows = output[0].T
    return corners(*rows[:, :4].T), rows[:, 4:].max(axis=1), rows[:, 4:].argmax(axis=1)


def yolov5(_, output):
    rows = output[0]
    score = rows[:, 4] * rows[:, 5:].max(axis=1)
    return corners(*rows[:, :4].T), score, rows[:, 5:].argmax(axis=1)


def greedy(boxes, scores, classes, threshold):
    x1, y1, x2, y2 = boxes.T
    areas = (x2 - x1) * (y2 - y1)
    order = np.argsort(-scores, kind="stable")
    keep = []
    while order.size:
        best, order = order[0], order[1:]
        keep.append(best)
        w = np.minimum(x2[best], x2[order]) - np.maximum(x1[best], x1[order])
        h = np.minimum(y2[best], y2[order]) - np.maximum(y1[best], y1[order])
        inter = np.maximum(w, np.float32(0)) * np.maximum(h, np.float32(0))
        iou = inter / (areas[best] + areas[order] - inter)
        order = order[(iou <= threshold) | (classes[order] != classes[best])]
    return keep


def main():
    decode = {"ultraface": ultraface, "yolov8": yolov8, "yolov5": yolov5}[sys.argv[1]]
    score, iou, *size = np.array(sys.argv[2:6], np.float32)
    # Half precision is converted to single precision, which is exact.
    tensors = [np.load(path).astype(np.float32) for path in sys.argv[6:]]
    boxes, scores, classes = decode(size, *tensors)
    assert boxes.dtype == scores.dtype == np.float32
    anchors = np.flatnonzero(scores >= score)
    print(len(anchors))
    for i in greedy(boxes[anchors], scores[anchors], classes[anchors], iou):
        anchor = anchors[i]
        numbers = scores[anchor], *boxes[anchor]
        print(anchor, classes[anchor], *(f"{number:.9g}" for number in numbers))


main()
