"""Decodes a detector's tensors and suppresses duplicates with NumPy alone, in single precision.

usage: greedy.py HEAD SCORE IOU WIDTH HEIGHT TENSOR.npy...

HEAD is ultraface (scores, then boxes), yolov8 or yolov5. A row is a candidate where its score is
not below SCORE; of two candidates of one class the one with the lower score goes where their IoU
is above IOU. WIDTH and HEIGHT are the model's input in pixels, to which UltraFace's boxes are
scaled. Prints the number of candidates, then a line `row class score x1 y1 x2 y2` for each that is
kept, the highest score first.
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
    head = {"ultraface": ultraface, "yolov8": yolov8, "yolov5": yolov5}[sys.argv[1]]
    score, iou, *size = np.array(sys.argv[2:6], np.float32)
    # Half precision is widened first; that is exact.
    tensors = [np.load(path).astype(np.float32) for path in sys.argv[6:]]
    boxes, scores, classes = head(size, *tensors)
    assert boxes.dtype == scores.dtype == np.float32
    rows = np.flatnonzero(scores >= score)
    print(len(rows))
    for i in greedy(boxes[rows], scores[rows], classes[rows], iou):
        row = rows[i]
        print(row, classes[row], *(f"{value:.9g}" for value in (scores[row], *boxes[row])))


main()
