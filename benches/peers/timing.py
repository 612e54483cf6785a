# SPDX-License-Identifier: MIT OR Apache-2.0
"""Measures wall times of a function after a warm-up."""

import time

BUDGET = 0.25  # seconds for each measurement


def measure(work):
    began = time.perf_counter()
    while time.perf_counter() - began < BUDGET / 3:
        work()
    times = []
    began = time.perf_counter()
    # Work of seconds is measured less often.
    while (elapsed := time.perf_counter() - began) < BUDGET or (len(times) < 5 and elapsed < 20 * BUDGET):
        start = time.perf_counter()
        survivors = work()
        times.append((time.perf_counter() - start) * 1e6)
    return len(survivors), times
