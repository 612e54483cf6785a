# SPDX-License-Identifier: MIT OR Apache-2.0
"""Measures SAHI's merging and nmsfilter.suppress on the same boxes, alternately in one run, on one thread.

    python compare_with_sahi.py [BOXES]

Needs the packages sahi (0.12.6), shapely and nmsfilter (a wheel by python/build.sh); with numba, SAHI's numba backend is
measured, too. BOXES is the number of boxes, 33337 by default, with which SAHI takes a minute per backend. SAHI's functions
find the groups; nmsfilter also computes the merged boxes. Prints the median of three runs (of one, if it takes more than
10 s), and the numbers of groups.
"""

import os
import statistics
import sys
import time

for name in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "NUMBA_NUM_THREADS"):
    os.environ[name] = "1"

import numpy
from sahi.postprocess.backends import set_postprocess_backend
from sahi.postprocess.combine import greedy_nmm, nmm

import nmsfilter

RUNS = 3
THRESHOLD = 0.3


def boxes_at(rng, centers):
    sizes = rng.uniform(20, 60, (len(centers), 2))
    return numpy.concatenate([centers - sizes / 2, centers + sizes / 2], axis=1).astype(numpy.float32)


def scene(rng, name, count):
    """Boxes and scores: around 30 centers, or spread so that few boxes overlap."""
    if name == "crowded":
        centers = rng.uniform(0, 1000, (30, 2))[rng.integers(0, 30, count)] + rng.normal(0, 30, (count, 2))
    else:
        centers = rng.uniform(0, 40 * count**0.5, (count, 2))
    return boxes_at(rng, centers), rng.uniform(0.1, 1, count).astype(numpy.float32)


def seconds(work):
    began = time.perf_counter()
    result = work()
    return time.perf_counter() - began, result


def main():
    count = int(sys.argv[1]) if len(sys.argv) > 1 else 33_337
    rng = numpy.random.default_rng(12)
    backends = ["numpy"]
    try:
        import numba  # noqa: F401

        backends.append("numba")
    except ImportError:
        print("SKIPPED: numba is not installed")
    for layout, method, theirs in (
        ("crowded", "merge-transitive", nmm),
        ("scattered", "merge-transitive", nmm),
        ("crowded", "merge", greedy_nmm),
        ("scattered", "merge", greedy_nmm),
    ):
        boxes, scores = scene(rng, layout, count)
        rows = numpy.column_stack([boxes, scores, numpy.zeros(count, numpy.float32)])

        def ours():
            return nmsfilter.suppress(
                boxes, scores, method=method, overlap="smaller", iou_threshold=THRESHOLD, threshold_inclusive=True,
                lose_released=True,
            )

        programs = {"nmsfilter": ours}
        for backend in backends:
            def sahi(backend=backend):
                set_postprocess_backend(backend)
                return theirs(rows, match_metric="IOS", match_threshold=THRESHOLD)

            programs[f"sahi {backend}"] = sahi
            set_postprocess_backend(backend)
            theirs(rows[:3000], match_metric="IOS", match_threshold=THRESHOLD)  # compiles
        times = {name: [] for name in programs}
        groups = {}
        for _ in range(RUNS):
            for name, work in programs.items():
                if any(took > 10 for took in times[name]):
                    continue
                took, result = seconds(work)
                times[name].append(took)
                groups[name] = len(result.boxes) if name == "nmsfilter" else len(result)
        own = statistics.median(times["nmsfilter"])
        for name in programs:
            median = statistics.median(times[name])
            print(
                f"{layout:9} {method:16} {count} boxes: {name:11} {median * 1e3:9.1f} ms, {median / own:7.1f} x, "
                f"{groups[name]} groups",
                flush=True,
            )


if __name__ == "__main__":
    main()
