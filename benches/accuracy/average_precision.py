# SPDX-License-Identifier: MIT OR Apache-2.0
"""COCO's average precision.

In: for each picture, the detections as rows of class, left, top, right, bottom, score, and the true boxes as rows of
class, left, top, right, bottom, crowd (0 or 1). Out: AP, AP50 and AP75. AP is the mean over overlap thresholds from
0.50 to 0.95. Each number is the mean over the classes that have a true box.

In each picture and class, only the 100 detections with the highest scores count. In the order of scores, each detection
takes the free true box with the greatest overlap, if the overlap reaches the threshold. A detection without a true box
is wrong, unless it overlaps a crowd; in this case it is ignored. A crowd that no detection overlaps is ignored, too.

With a greatest area, larger true boxes are ignored, and so are the detections that take them, and larger detections
without a true box. COCO's small objects have at most 32 x 32 pixels.
"""

import numpy as np

THRESHOLDS = np.linspace(0.5, 0.95, 10)
RECALLS = np.linspace(0, 1, 101)
MOST_DETECTIONS = 100
SMALL = 32 * 32


def areas(boxes):
    return np.prod(boxes[:, 2:] - boxes[:, :2], axis=1)


def overlaps(found, true, crowd):
    """Returns the IoU of each detection with each true box; for a crowd, the intersection over the detection's area."""
    least = np.maximum(found[:, None, :2], true[None, :, :2])
    most = np.minimum(found[:, None, 2:], true[None, :, 2:])
    shared = np.prod(np.maximum(most - least, 0), axis=2)
    whole = areas(found)[:, None] + np.where(crowd, 0, areas(true) - shared)
    return np.divide(shared, whole, out=np.zeros_like(shared), where=whole > 0)


def assign(found, true, crowd, most_area):
    """Returns two arrays by threshold and detection: true if the detection is right, and true if it counts."""
    shape = len(THRESHOLDS), len(found)
    right = np.zeros(shape, bool)
    counts = np.tile(areas(found) <= most_area, (len(THRESHOLDS), 1))
    free = np.ones((len(THRESHOLDS), len(true)), bool)
    levels = np.arange(len(THRESHOLDS))
    overlap = overlaps(found, true, crowd)
    ignored = crowd | (areas(true) > most_area)
    for number in range(len(found) if len(true) else 0):
        near = free & (overlap[number] >= THRESHOLDS[:, None])
        has_choice = (near & ~ignored).any(axis=1)
        possible = np.where(near & np.where(has_choice[:, None], ~ignored, ignored), overlap[number], -1)
        # If overlaps are equal, the last true box is taken.
        best = len(true) - 1 - possible[:, ::-1].argmax(axis=1)
        taken = possible[levels, best] >= 0
        free[levels[taken], best[taken]] = crowd[best[taken]]
        right[:, number] = taken & has_choice
        counts[:, number] = np.where(taken, has_choice, counts[:, number])
    return right, counts


def area_under_curve(right, positives):
    """Returns the mean precision at 101 recalls.

    `right` has the detections that count by descending score, and is true for those that are right.
    """
    if not len(right):
        return 0.0
    hits = np.cumsum(right)
    recall, precision = hits / positives, hits / np.arange(1, len(right) + 1)
    # The precision at a recall is the maximum over this recall and all greater ones.
    precision = np.maximum.accumulate(precision[::-1])[::-1]
    at = np.searchsorted(recall, RECALLS)
    return np.append(precision, 0)[at].mean()


def of_class(detections, truths, most_area):
    """Returns the average precision of one class at each threshold, or `None` if no picture has a box of this class."""
    scores, right, counts, positives = [], [], [], 0
    for found, true in zip(detections, truths):
        found = found[np.argsort(-found[:, 5], kind="stable")][:MOST_DETECTIONS]
        crowd = true[:, 5] > 0
        positives += np.count_nonzero(~crowd & (areas(true[:, 1:5]) <= most_area))
        is_right, is_counted = assign(found[:, 1:5], true[:, 1:5], crowd, most_area)
        scores.append(found[:, 5])
        right.append(is_right)
        counts.append(is_counted)
    if positives == 0:
        return None
    order = np.argsort(-np.concatenate(scores), kind="stable")
    right, counts = (np.concatenate(rows, axis=1)[:, order] for rows in (right, counts))
    return [area_under_curve(hit[counted], positives) for hit, counted in zip(right, counts)]


def average_precision(detections, truths, most_area=np.inf):
    """Returns AP, AP50 and AP75 of objects up to this area. They are NaN if there is no such true box."""
    classes = np.unique(np.concatenate([true[:, 0] for true in truths] or [[]]))
    rows = []
    for number in classes:
        of = [[boxes[boxes[:, 0] == number] for boxes in pictures] for pictures in (detections, truths)]
        rows.append(of_class(*of, most_area))
    rows = [row for row in rows if row is not None]
    if not rows:
        return [float("nan")] * 3
    means = np.mean(rows, axis=0)
    return [float(number) for number in (means.mean(), means[0], means[5])]
