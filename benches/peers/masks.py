# SPDX-License-Identifier: MIT OR Apache-2.0
"""Measures masks in NumPy, with the survivors and prototypes that nmsbench's section `masks` has written.

    python masks.py FOLDER

There are two programs. One multiplies all coefficients by all prototypes at once, and then crops, as Ultralytics does.
The other multiplies only the prototypes within the box of each survivor. Neither decodes or suppresses. The numbers of
pixels that are set equal nmsbench's numbers, except where a logit is near 0, since NumPy adds in another order. For a
single thread, set OPENBLAS_NUM_THREADS=1.
"""

import pathlib
import sys

import numpy as np

from timing import measure

CHANNELS, SIDE, MODEL = 32, 160, 640


def all_at_once(boxes, coefficients, prototypes):
    logits = (coefficients @ prototypes.reshape(CHANNELS, -1)).reshape(-1, SIDE, SIDE)
    left, top, right, bottom = (boxes * np.float32(SIDE / MODEL)).T[:, :, None]
    pixels = np.arange(SIDE, dtype=np.float32)
    inside = ((pixels >= left) & (pixels < right))[:, None, :] & ((pixels >= top) & (pixels < bottom))[:, :, None]
    return np.packbits((logits > 0) & inside, axis=-1)


def in_boxes(boxes, coefficients, prototypes):
    edges = np.clip(np.ceil(boxes * np.float32(SIDE / MODEL)), 0, SIDE).astype(int)
    masks = []
    for (left, top, right, bottom), row in zip(edges, coefficients):
        part = prototypes[:, top:bottom, left:right]
        logits = row @ part.reshape(CHANNELS, -1)
        masks.append(np.packbits(logits.reshape(part.shape[1:]) > 0, axis=-1))
    return masks


def main():
    folder = pathlib.Path(sys.argv[1])
    prototypes = np.fromfile(folder / "masks-prototypes.f32", np.float32).reshape(CHANNELS, SIDE, SIDE)
    print(f"{'objects':10}{'program':14}{'set':>10}{'median us':>12}{'p90 us':>12}")
    for name in ("small", "medium", "large"):
        rows = np.fromfile(folder / f"masks-{name}.f32", np.float32).reshape(-1, 4 + CHANNELS)
        boxes, coefficients = rows[:, :4].copy(), rows[:, 4:].copy()
        for program in (all_at_once, in_boxes):
            masks = program(boxes, coefficients, prototypes)
            ones = sum(int(np.unpackbits(mask).sum()) for mask in masks)
            _, times = measure(lambda: program(boxes, coefficients, prototypes))
            median, p90 = np.median(times), np.quantile(times, 0.9)
            print(f"{name:10}{program.__name__:14}{ones:>10}{median:>12.0f}{p90:>12.0f}")


main()
