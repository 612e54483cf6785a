#!/usr/bin/env python3
# SPDX-License-Identifier: MIT OR Apache-2.0
"""Measures the start of nmsfilter: a process that plays one frame, minus the same process without nmsfilter.

    start.py FOLDER [COMMAND...]

Writes FOLDER/start.csv. GST_PLUGIN_PATH names the folder of the plugins. COMMAND runs gst-launch-1.0 in an environment.
"""

import csv
import os
import statistics
import subprocess
import sys
import tempfile
import time

ROUNDS = 11
SOURCE = "crowdtestsrc num-buffers=1 decoder=yolov8"
CASES = {
    "without nmsfilter": "! fakesink",
    "cpu": "! nmsfilter backend=cpu ! fakesink",
    "cuda": "! nmsfilter backend=cuda ! fakesink",
    "cuda, empty cache of the driver": "! nmsfilter backend=cuda ! fakesink",
}


def run(case, cache):
    """Milliseconds of a process, or nothing if it fails. `cache` is the driver's folder for compiled kernels."""
    variables = {"CUDA_CACHE_PATH": cache, "GST_REGISTRY": registry}
    launch = [*sys.argv[2:], "gst-launch-1.0", "-q", *SOURCE.split(), *CASES[case].split()]
    began = time.perf_counter()
    done = subprocess.run(launch, env={**os.environ, **variables}, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    return (time.perf_counter() - began) * 1e3 if done.returncode == 0 else None


with tempfile.TemporaryDirectory() as folder:
    registry = f"{folder}/registry.bin"
    # The first runs fill both caches, and tell what this machine can run.
    able = [case for case in CASES if run(case, folder) is not None]
    times = {case: [] for case in able}
    for _ in range(ROUNDS):
        for case in able:
            with tempfile.TemporaryDirectory() as empty:
                times[case].append(run(case, empty if "empty" in case else folder))
with open(f"{sys.argv[1]}/start.csv", "w", newline="") as file:
    out = csv.writer(file)
    out.writerow(["element", "median ms", "difference ms"])
    for case, each in times.items():
        median = statistics.median(each)
        out.writerow([case, f"{median:.0f}", f"{median - statistics.median(times['without nmsfilter']):.0f}"])
        print(f"{case:32} {median:7.0f} ms")
