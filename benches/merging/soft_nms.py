# SPDX-License-Identifier: MIT OR Apache-2.0
"""Compares Soft-NMS of OpenCV and TensorFlow with nmsfilter.suppress: results, and time on one thread.

    python soft_nms.py

Needs the packages nmsfilter (a wheel by python/build.sh) and opencv-python-headless; with tensorflow, TensorFlow is
compared, too. TensorFlow has the Gaussian function only, and its sigma is half of nmsfilter's. Ten boxes lie around
each center, with edges at whole pixels, since OpenCV's boxes are integers. The programs run alternately. Prints the
median of nine times, nmsfilter's, their ratio, the number of survivors, and the greatest difference of a score. The exit
status is 1 if the survivors or their order differ.
"""

import functools
import os
import statistics
import sys
import time

for name in ("OMP_NUM_THREADS", "TF_NUM_INTRAOP_THREADS", "TF_NUM_INTEROP_THREADS"):
    os.environ[name] = "1"
os.environ["TF_CPP_MIN_LOG_LEVEL"] = "3"

import cv2
import numpy

import nmsfilter

COUNTS = (100, 1000, 5000)
RUNS = 9
IOU_THRESHOLD, SCORE_THRESHOLD, SIGMA = 0.5, 0.1, 0.5
CV_METHODS = {
    "soft-linear": cv2.dnn.SOFT_NMSMETHOD_SOFTNMS_LINEAR,
    "soft-gaussian": cv2.dnn.SOFT_NMSMETHOD_SOFTNMS_GAUSSIAN,
}


def scene(rng, count):
    centers = rng.uniform(0, 1000, (count // 10, 2))[rng.integers(0, count // 10, count)]
    centers += rng.normal(0, 8, (count, 2))
    sizes = rng.uniform(20, 60, (count, 2))
    boxes = numpy.rint(numpy.concatenate([centers - sizes / 2, centers + sizes / 2], axis=1))
    return boxes.astype(numpy.float32), rng.uniform(0.05, 1, count).astype(numpy.float32)


def own(method, boxes, scores):
    return nmsfilter.suppress(
        boxes, scores, method=method, iou_threshold=IOU_THRESHOLD, score_threshold=SCORE_THRESHOLD, sigma=SIGMA
    )


def opencv(method, boxes, scores):
    rectangles = numpy.column_stack([boxes[:, :2], boxes[:, 2:] - boxes[:, :2]]).astype(numpy.int32)
    return functools.partial(
        cv2.dnn.softNMSBoxes, rectangles, scores, SCORE_THRESHOLD, IOU_THRESHOLD, 0, SIGMA, CV_METHODS[method]
    )


def tensorflow(tf, boxes, scores):
    """TensorFlow drops boxes over the overlap threshold, which the Gaussian function has not, so it is 1."""
    with tf.device("CPU"):
        arguments = tf.constant(boxes), tf.constant(scores)
    call = functools.partial(
        tf.image.non_max_suppression_with_scores, *arguments, len(boxes), 1.0, SCORE_THRESHOLD, SIGMA / 2
    )

    def run():
        indices, lowered = call()
        return lowered.numpy(), indices.numpy()

    return run


def seconds(work):
    began = time.perf_counter()
    result = work()
    return time.perf_counter() - began, result


def compare(label, ours, other):
    """Prints a line, and returns whether the survivors are equal."""
    times = [], []
    for _ in range(RUNS):
        for spent, work in zip(times, (ours, other)):
            spent.append(seconds(work)[0])
    scores, indices = (numpy.ravel(array) for array in other())
    result = ours()
    is_equal = numpy.array_equal(result.keepers, indices)
    difference = numpy.abs(result.scores - scores).max() if is_equal else numpy.nan
    median, own_median = statistics.median(times[1]), statistics.median(times[0])
    print(
        f"{label:40} {median * 1e6:9.0f} us, nmsfilter {own_median * 1e6:8.0f} us, {median / own_median:6.1f} x, "
        f"{len(result.keepers)} survivors, {'equal' if is_equal else 'DIFFERENT'}, scores differ by {difference:.1e}",
        flush=True,
    )
    return is_equal


def main():
    cv2.setNumThreads(1)
    try:
        import tensorflow as tf
    except ImportError:
        tf = None
        print("SKIPPED: tensorflow is not installed")
    rng = numpy.random.default_rng(5)
    is_equal = True
    for count in COUNTS:
        boxes, scores = scene(rng, count)
        for method in CV_METHODS:
            ours = functools.partial(own, method, boxes, scores)
            is_equal &= compare(f"{count} boxes, {method}: OpenCV", ours, opencv(method, boxes, scores))
            if tf and method == "soft-gaussian":
                is_equal &= compare(f"{count} boxes, {method}: TensorFlow", ours, tensorflow(tf, boxes, scores))
    sys.exit(not is_equal)


if __name__ == "__main__":
    main()
