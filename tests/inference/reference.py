# SPDX-License-Identifier: MIT OR Apache-2.0
"""Decodes a detector's outputs and suppresses duplicates with NumPy, by the rules in core/src/engine/mod.rs.

usage: reference.py DECODER SCORE IOU WIDTH HEIGHT TENSOR... [--visible LEFT TOP RIGHT BOTTOM]
                    [--class-agnostic] [--max-detections N]

The DECODER ultraface reads scores [1,N,2] (background, face), then boxes [1,N,4] (corners from 0 to 1). The DECODER
yolov8 reads [1,4+C,N] (center x, center y, width and height in pixels, then C class scores). SCORE and IOU are the
thresholds. WIDTH and HEIGHT are the size of the model's input in pixels. The rectangle of --visible is in pixels of the
model's input, too: it is the part between the borders of a letterbox. Boxes that do not intersect it are rejected.

A TENSOR is the path of an .npy file, or PATH:TYPE:DIMENSIONS for a file that contains only the elements, in
little-endian byte order. TYPE is f32 or f16. Example: scores.bin:f32:1x17640x2.

Prints a line `# candidates=N rejected=N`, a heading `anchor,class,score,x1,y1,x2,y2`, and such a line for each
survivor, by descending score and ascending anchor. Corners are in pixels of the model's input. Numbers have nine
digits, from which single precision can be read back exactly.

The results equal the engines' results to the bit. All operations are IEEE 754 operations (conversion, sum, difference,
product, half, comparison) in single precision, in the order of the rules, and NumPy rounds each of them separately. The
following is not implemented: overlap measures other than IoU, methods other than greedy, size limits, class
thresholds, multi-label, pixel offset, and batches.
"""

import argparse
import sys

import numpy as np

f32 = np.float32
# Maximum length of a box's side.
MAX_BOX_SIDE = f32(1.0e9)


def tensor(argument):
    """Reads the elements of a tensor, in single precision."""
    if argument.endswith(".npy"):
        elements = np.load(argument)
    else:
        path, kind, dimensions = argument.rsplit(":", 2)
        elements = np.fromfile(path, {"f32": "<f4", "f16": "<f2"}[kind])
        elements = elements.reshape([int(length) for length in dimensions.split("x")])
    # The conversion from half precision is exact.
    return elements.astype(f32)


def decode(decoder, tensors, size):
    """Returns corners in pixels, and class scores, as arrays with one row per anchor."""
    if decoder == "ultraface":
        scores, boxes = tensors
        assert scores.shape[2] == 2 and boxes.shape == (1, scores.shape[1], 4), "shapes of UltraFace"
        return boxes[0] * np.tile(size, 2), scores[0, :, 1:]
    (output,) = tensors
    assert output.ndim == 3 and output.shape[0] == 1 and output.shape[1] > 4, "shape of YOLOv8"
    x, y, width, height = output[0, :4]
    half_width, half_height = width / f32(2), height / f32(2)
    corners = [x - half_width, y - half_height, x + half_width, y + half_height]
    return np.stack(corners, axis=1), output[0, 4:].T


def candidates(corners, scores, threshold, visible):
    """Returns the indices of candidates, the class and score of each anchor, and the number of rejected anchors."""
    # NaN ranks below all other scores. If scores are equal, argmax returns the first.
    ranked = np.where(np.isnan(scores), f32("-inf"), scores)
    classes = ranked.argmax(axis=1)
    # Adding zero turns minus zero into zero.
    best = ranked[np.arange(len(ranked)), classes] + f32(0)

    x1, y1, x2, y2 = corners.T
    width, height = x2 - x1, y2 - y1
    left, top, right, bottom = visible
    rejected = ~np.isfinite(best)
    remaining = ~rejected & ~(best < threshold)
    invalid = ~np.isfinite(corners).all(axis=1)
    invalid |= (width < 0) | (height < 0) | (width > MAX_BOX_SIDE) | (height > MAX_BOX_SIDE)
    rejected |= remaining & invalid
    remaining &= ~invalid & (width != 0) & (height != 0)
    outside = (x2 <= left) | (x1 >= right) | (y2 <= top) | (y1 >= bottom)
    rejected |= remaining & outside
    remaining &= ~outside
    return np.flatnonzero(remaining), classes, best, np.count_nonzero(rejected)


def suppress(corners, scores, classes, threshold):
    """Returns the indices of the survivors by descending rank. If scores are equal, the lower index has the higher rank."""
    x1, y1, x2, y2 = corners.T
    areas = (x2 - x1) * (y2 - y1)
    # Negation is exact.
    order = np.argsort(-scores, kind="stable")
    survivors = []
    while order.size:
        first, order = order[0], order[1:]
        survivors.append(first)
        width = np.minimum(x2[first], x2[order]) - np.maximum(x1[first], x1[order])
        height = np.minimum(y2[first], y2[order]) - np.maximum(y1[first], y1[order])
        intersection = width * height
        union = areas[first] + areas[order] - intersection
        conflicts = (width > 0) & (height > 0) & (intersection > threshold * union)
        order = order[~(conflicts & (classes[order] == classes[first]))]
    return np.array(survivors, int)


def main():
    raw = argparse.RawDescriptionHelpFormatter
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=raw)
    parser.add_argument("decoder", choices=["ultraface", "yolov8"])
    for name in ["score", "iou", "width", "height"]:
        parser.add_argument(name, type=f32)
    parser.add_argument("tensors", type=tensor, nargs="+")
    everywhere = [f32("-inf"), f32("-inf"), f32("inf"), f32("inf")]
    parser.add_argument("--visible", type=f32, nargs=4, default=everywhere)
    parser.add_argument("--class-agnostic", action="store_true")
    parser.add_argument("--max-detections", type=int)
    options = parser.parse_args()

    size = np.array([options.width, options.height], f32)
    corners, scores = decode(options.decoder, options.tensors, size)
    anchors, classes, scores, rejected = candidates(corners, scores, options.score, options.visible)
    compared = np.zeros_like(classes) if options.class_agnostic else classes
    kept = suppress(corners[anchors], scores[anchors], compared[anchors], options.iou)
    assert corners.dtype == scores.dtype == f32, "single precision throughout"

    print(f"# candidates={len(anchors)} rejected={rejected}")
    print("anchor,class,score,x1,y1,x2,y2")
    for anchor in anchors[kept][: options.max_detections]:
        numbers = scores[anchor], *corners[anchor]
        print(anchor, classes[anchor], *(f"{number:.9g}" for number in numbers), sep=",")


if __name__ == "__main__":
    # Untrusted tensors may contain infinities and NaN.
    with np.errstate(all="ignore"):
        sys.exit(main())
