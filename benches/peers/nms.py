# SPDX-License-Identifier: MIT OR Apache-2.0
"""Measures OpenCV, torchvision and DeepStream's nvinfer on the candidate lists that nmsbench has measured.

Each program uses a single thread.

    python nms.py FOLDER [LIBRARY]

Reads FOLDER/candidates.csv, which has the lists, the number of rows of each, and the times of this project's engines.
Prints the results and writes FOLDER/peers.csv. A ratio is the program's median time divided by the engine's. LIBRARY is
nvinfer's suppression (nvinfer/build.sh). If there is a GPU, torchvision is also measured on it, as wall time including
a synchronization. All programs run exact greedy suppression regardless of class. The table has the number of survivors
because OpenCV rounds differently.
"""

import csv
import pathlib
import sys

import numpy as np

sys.path.append(str(pathlib.Path(__file__).parent / "nvinfer"))
from nvinfer import Nvinfer

from timing import BUDGET, measure

try:
    import cv2
except ImportError:
    print("SKIPPED: OpenCV is not installed")
    cv2 = None
else:
    cv2.setNumThreads(1)
try:
    import torch
    import torchvision
except ImportError:
    print("SKIPPED: torchvision is not installed")
    torch = torchvision = None
else:
    torch.set_num_threads(1)
ON_GPU = torch is not None and torch.cuda.is_available()


def measure_nvinfer(corners, scores, iou):
    """Measures with the clock of the library, so that only nvinfer's function is timed."""
    def run(runs):
        return nvinfer.suppress(corners, scores, iou, runs)

    runs = max(5, int(BUDGET * 1e6 / np.median(run(3)[1])))
    run(runs // 3)
    survivors, times = run(runs)
    return len(survivors), times


def corners_and_scores(path, rows):
    heading = open(path).readline().startswith("x1")
    table = np.loadtxt(path, delimiter=",", skiprows=int(heading), dtype=np.float32)[:rows]
    if heading:
        return table[:, :4], np.ascontiguousarray(table[:, 4])
    x, y, side, score = table.T  # the paper's windows
    return np.column_stack([x, y, x + side, y + side]), np.ascontiguousarray(score)


def peers(corners, scores, iou):
    """Yields the name of each program, its number of survivors, and its times in microseconds."""
    if nvinfer is not None:
        yield "nvinfer", *measure_nvinfer(corners, scores, iou)
    if cv2 is not None:
        sides = np.column_stack([corners[:, :2], corners[:, 2:] - corners[:, :2]]).astype(np.float64)
        yield "OpenCV NMSBoxes", *measure(lambda: cv2.dnn.NMSBoxes(sides, scores, 0.0, iou))
    if torch is not None:
        boxes, values = torch.from_numpy(corners.copy()), torch.from_numpy(scores)
        yield "torchvision, CPU", *measure(lambda: torchvision.ops.nms(boxes, values, iou))
    if ON_GPU:
        boxes, values = boxes.cuda(), values.cuda()

        def on_gpu():
            kept = torchvision.ops.nms(boxes, values, iou)
            torch.cuda.synchronize()
            return kept

        yield "torchvision, GPU", *measure(on_gpu)


folder, *library = sys.argv[1:]
nvinfer = Nvinfer(library[0]) if library else None
lists = {}
for row in csv.DictReader(open(f"{folder}/candidates.csv")):
    lists.setdefault(row["list"], []).append(row)
versions = [f"{module.__name__} {module.__version__}" for module in (cv2, torch, torchvision) if module]
print(", ".join(versions + ["nvinfer of DeepStream 9.1"] * len(library)))
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
    for peer, kept, times in peers(corners, scores, float(rows[0]["iou"])):
        table.append((peer, kept, *(f"{value:.1f}" for value in np.quantile(times, [0.5, 0.1, 0.9]))))
    for program, kept, median, p10, p90 in table:
        ratios = [f"{float(median) / value:.1f}" for value in own]
        out.writerow([name, rows[0]["n"], program, kept, median, p10, p90, *ratios])
        print(f"{name:28}{rows[0]['n']:>7}  {program:20}{kept:>6}{median:>12}{p10:>10}{p90:>10} ", *(
            f"{ratio:>12}" for ratio in ratios))
