# SPDX-License-Identifier: MIT OR Apache-2.0
"""Measures OpenCV's NMSBoxesRotated with one thread on the lists of oriented boxes that nmsbench has measured.

    python oriented.py FOLDER

Reads FOLDER/oriented.csv and FOLDER/oriented-boxes-N.csv. Prints the results and writes FOLDER/oriented-peers.csv. A
ratio is OpenCV's median time divided by the median time of the row's program. All programs run exact greedy suppression
by the area of the polygons. nmsbench's engines additionally decode the boxes.
"""

import csv
import sys

import cv2
import numpy as np

from timing import measure

cv2.setNumThreads(1)
folder = sys.argv[1]
rows = [row for row in csv.DictReader(open(f"{folder}/oriented.csv")) if row["rule"] == "polygons"]
out = csv.writer(open(f"{folder}/oriented-peers.csv", "w", newline=""))
heading = ["n", "program", "survivors", "median us", "OpenCV / program"]
out.writerow(heading)
print(f"OpenCV {cv2.__version__}")
print("{:>7}  {:20}{:>10}{:>14}{:>18}".format(*heading))
for n in dict.fromkeys(row["n"] for row in rows):
    table = np.loadtxt(f"{folder}/oriented-boxes-{n}.csv", delimiter=",", skiprows=1, dtype=np.float32)
    boxes = [((x, y), (w, h), np.degrees(angle)) for x, y, w, h, angle, _ in table.astype(float)]
    scores = table[:, 5].tolist()
    survivors, times = measure(lambda: cv2.dnn.NMSBoxesRotated(boxes, scores, 0.25, 0.45))
    median = float(np.median(times))
    programs = [(row["program"], row["survivors"], float(row["median us"])) for row in rows if row["n"] == n]
    for program, kept, time in [*programs, ("OpenCV", survivors, median)]:
        cells = [n, program, kept, f"{time:.1f}", f"{median / time:.1f}"]
        out.writerow(cells)
        print("{:>7}  {:20}{:>10}{:>14}{:>18}".format(*cells))
