# SPDX-License-Identifier: MIT OR Apache-2.0
"""Measures OpenCV and torchvision on the candidate lists that nmsbench has measured, with one thread each.

    python nms.py FOLDER

Reads FOLDER/candidates.csv: the lists, the number of rows of each, and the times of this project's
engines. Prints the results and writes FOLDER/peers.csv. Ratios are the program's median time divided by
the engine's. If there is a GPU, torchvision is also measured there, as wall time that includes a
synchronization. All programs run exact greedy suppression regardless of class. The number of survivors is
shown because OpenCV rounds differently.
"""

import csv
import sys
import time

import numpy as np
import torch
import torchvision

try:
    import cv2
except ImportError:
    print("SKIPPED: OpenCV is not installed")
    cv2 = None
else:
    cv2.setNumThreads(1)
torch.set_num_threads(1)
ON_GPU = torch.cuda.is_available()
BUDGET = 0.5  # seconds for each measurement


def measure(work):
    began = time.perf_counter()
    while time.perf_counter() - began < BUDGET / 3:
        work()
    times = []
    began = time.perf_counter()
    while len(times) < 5 or time.perf_counter() - began < BUDGET:
        start = time.perf_counter()
        work()
        times.append((time.perf_counter() - start) * 1e6)
    return np.quantile(times, [0.5, 0.1, 0.9])


def corners_and_scores(path, rows):
    heading = open(path).readline().startswith("x1")
    table = np.loadtxt(path, delimiter=",", skiprows=int(heading), dtype=np.float32)[:rows]
    if heading:
        return table[:, :4], np.ascontiguousarray(table[:, 4])
    x, y, side, score = table.T  # the paper's windows
    return np.column_stack([x, y, x + side, y + side]), np.ascontiguousarray(score)


def peers(corners, scores, iou):
    sides = np.column_stack([corners[:, :2], corners[:, 2:] - corners[:, :2]]).astype(np.float64)
    if cv2 is not None:
        yield "OpenCV NMSBoxes", lambda: cv2.dnn.NMSBoxes(sides, scores, 0.0, iou)
    boxes, values = torch.from_numpy(corners.copy()), torch.from_numpy(scores)
    yield "torchvision, CPU", lambda: torchvision.ops.nms(boxes, values, iou)
    if ON_GPU:
        boxes, values = boxes.cuda(), values.cuda()

        def on_gpu():
            kept = torchvision.ops.nms(boxes, values, iou)
            torch.cuda.synchronize()
            return kept

        yield "torchvision, GPU", on_gpu


folder = sys.argv[1]
lists = {}
for row in csv.DictReader(open(f"{folder}/candidates.csv")):
    lists.setdefault(row["list"], []).append(row)
print(f"OpenCV {cv2 and cv2.__version__}, torch {torch.__version__}, torchvision {torchvision.__version__}")
heading = ["list", "n", "program", "survivors", "median us", "p10 us", "p90 us"]
ours = list(dict.fromkeys(row["engine"] for rows in lists.values() for row in rows))
heading += [f"ratio to {engine}" for engine in ours]
out = csv.writer(open(f"{folder}/peers.csv", "w", newline=""))
out.writerow(heading)
print("{:28}{:>7}  {:20}{:>6}{:>12}{:>10}{:>10}".format(*heading[:7]), *heading[7:])
for name, rows in lists.items():
    own = [float(row["median us"]) for row in rows]
    table = [(row["engine"], row["survivors"], row["median us"], row["p10 us"], row["p90 us"]) for row in rows]
    corners, scores = corners_and_scores(rows[0]["file"], int(rows[0]["n"]))
    for peer, work in peers(corners, scores, float(rows[0]["iou"])):
        table.append((peer, len(work()), *(f"{value:.1f}" for value in measure(work))))
    for program, kept, median, p10, p90 in table:
        ratios = [f"{float(median) / value:.1f}" for value in own]
        out.writerow([name, rows[0]["n"], program, kept, median, p10, p90, *ratios])
        print(f"{name:28}{rows[0]['n']:>7}  {program:20}{kept:>6}{median:>12}{p10:>10}{p90:>10} ", *(
            f"{ratio:>12}" for ratio in ratios))
