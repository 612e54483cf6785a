# SPDX-License-Identifier: MIT OR Apache-2.0
"""python -m nmsfilter.convert: converts the lines of the element detectionjson for tools that measure and label.

In: a file of lines. Out: COCO's results, tracks of the MOT challenge, or a file of KITTI for each picture. Boxes are
those of bounding_box, in pixels; of an oriented box, its bounds. Only masks need NumPy.
"""

from __future__ import annotations

import argparse
import json
import pathlib
import signal
import sys
from collections.abc import Iterable, Iterator
from typing import Any

Json = dict[str, Any]


class ConvertError(Exception):
    """The lines cannot be converted."""


def frames(path: pathlib.Path) -> list[Json]:
    """Reads the lines of one source."""
    found: list[Json] = []
    for number, text in enumerate(path.read_text("utf-8").splitlines(), 1):
        where = f"{path}, line {number}"
        try:
            frame = json.loads(text)
            if "streams" in frame:
                raise ConvertError(f"{where} is a batch of DeepStream; expected lines of one stream")
            if not {"index", "resolution", "objects"} <= set(frame):
                raise ValueError("a field is missing")
        except (ValueError, TypeError) as error:
            raise ConvertError(f"{where}: expected a line of detectionjson: {error}") from error
        found.append(frame)
    sources = {frame.get("source") for frame in found}
    if len(sources) > 1:
        raise ConvertError(f"{path} has lines of several sources, {sources}; expected those of one")
    return found


def measured(frame: Json, item: Json) -> tuple[float, float, float, float, float]:
    """Returns left, top, width and height of an object in pixels of the frame, and its confidence."""
    box = item["detection"].get("bounding_box", {})
    numbers = [box.get(edge) for edge in ("x_min", "y_min", "x_max", "y_max")] + [item["detection"].get("confidence")]
    if None in numbers:
        raise ConvertError(f"frame {frame['index']} has an object without confidence, or with an unknown edge")
    width, height = frame["resolution"]["width"], frame["resolution"]["height"]
    x1, y1, x2, y2, score = (number * side for number, side in zip(numbers, (width, height, width, height, 1)))
    return x1, y1, x2 - x1, y2 - y1, score


def label(item: Json) -> str:
    """Returns the label of an object."""
    text = item["detection"].get("label")
    if not text:
        number = item["detection"].get("label_id")
        raise ConvertError(f"an object of class {number} has no label; set label-file of nmsfilter")
    return str(text)


def named(lines: list[Json], pictures: pathlib.Path | None) -> Iterator[tuple[str, Json]]:
    """Yields the name of each frame's picture, and the frame."""
    names = pictures.read_text("utf-8").splitlines() if pictures else None
    seen = set()
    for frame in lines:
        index = frame["index"]
        if names is not None and index >= len(names):
            raise ConvertError(f"{pictures} names {len(names)} pictures, but there is a line with index {index}")
        name = names[index] if names is not None else frame.get("file")
        if name is None:
            raise ConvertError("lines have no file; --pictures FILE names the pictures, one a line, in order")
        name = pathlib.PurePath(name).name
        if name in seen:
            raise ConvertError(f"two lines are of {name}; --pictures FILE names the pictures, one a line, in order")
        seen.add(name)
        yield name, frame


def coco(lines: list[Json], annotations: Json, pictures: pathlib.Path | None) -> list[Json]:
    """Returns COCO's results, with the numbers that `annotations` gives to pictures and categories."""
    categories = {category["name"]: category["id"] for category in annotations["categories"]}
    images = {pathlib.PurePath(image["file_name"]).name: image for image in annotations["images"]}
    if len(images) < len(annotations["images"]):
        raise ConvertError("the annotations have two pictures of one name in different folders")
    results = []
    for name, frame in named(lines, pictures):
        if name not in images:
            raise ConvertError(f"the annotations have no picture {name}")
        size = [frame["resolution"][side] for side in ("width", "height")]
        if size != [images[name].get(side, length) for side, length in zip(("width", "height"), size)]:
            raise ConvertError(f"{name} was detected at {size}, but the annotations have another size")
        for item in frame["objects"]:
            if label(item) not in categories:
                raise ConvertError(f"the annotations have no category {label(item)!r}")
            *box, score = measured(frame, item)
            result = {
                "image_id": images[name]["id"],
                "category_id": categories[label(item)],
                "bbox": box,
                "score": score,
            }
            if "mask" in item:
                counts = compressed(column_runs(item["mask"], *size))
                result["segmentation"] = {"size": size[::-1], "counts": counts}
            if "keypoints" in item:
                points = ((x, y, *(visibility or [1])) for x, y, *visibility in item["keypoints"]["points"])
                result["keypoints"] = [number for point in points for number in point]
            results.append(result)
    return results


def column_runs(mask: Json, width: int, height: int) -> list[int]:
    """Returns the lengths of runs of a mask's pixels on the frame, column by column, first of pixels that are not set.

    A pixel of the frame has the value of the mask's pixel that covers its center.
    """
    import numpy

    runs = mask["runs"]
    values = numpy.repeat(numpy.arange(len(runs)) % 2 == 1, runs).reshape(mask["height"], mask["width"])
    columns = numpy.floor((numpy.arange(width) + 0.5 - mask["x"]) * mask["width"] / mask["w"]).astype(int)
    rows = numpy.floor((numpy.arange(height) + 0.5 - mask["y"]) * mask["height"] / mask["h"]).astype(int)
    inside = ((0 <= columns) & (columns < mask["width"]))[:, None] & ((0 <= rows) & (rows < mask["height"]))
    clipped = values.T[columns.clip(0, mask["width"] - 1)][:, rows.clip(0, mask["height"] - 1)]
    pixels = numpy.concatenate(([False], (clipped & inside).ravel()))
    edges = numpy.flatnonzero(pixels[1:] != pixels[:-1])
    return [int(run) for run in numpy.diff(numpy.concatenate(([0], edges, [width * height])))]


def compressed(runs: list[int]) -> str:
    """Returns COCO's text of runs: from the fourth on, the difference to the second last; five bits a character."""
    text = ""
    for index, run in enumerate(runs):
        number = run - runs[index - 2] if index > 2 else run
        more = True
        while more:
            bits = number & 31
            number >>= 5
            more = number != (-1 if bits & 16 else 0)
            text += chr(48 + bits + 32 * more)
    return text


def mot(lines: list[Json]) -> Iterator[str]:
    """Yields lines of the MOT challenge for objects that have an id. Frames and positions count from 1."""
    if len({frame["index"] for frame in lines}) < len(lines):
        raise ConvertError("two lines have one index; expected the lines of one run")
    tracked = [(frame, item) for frame in lines for item in frame["objects"] if "id" in item]
    if not tracked and any(frame["objects"] for frame in lines):
        raise ConvertError("no object has an id; put objecttracker before detectionjson")
    for frame, item in tracked:
        left, top, width, height, score = measured(frame, item)
        numbers = [frame["index"] + 1, item["id"], left + 1, top + 1, width, height, score, -1, -1, -1]
        yield ",".join(str(number) for number in numbers)


def kitti(frame: Json) -> Iterator[str]:
    """Yields lines of KITTI. What a detector does not know has KITTI's values for unknown."""
    for item in frame["objects"]:
        x, y, width, height, score = measured(frame, item)
        box = f"{x:.2f} {y:.2f} {x + width:.2f} {y + height:.2f}"
        name = "_".join(label(item).split())
        yield f"{name} -1 -1 -10 {box} -1 -1 -1 -1000 -1000 -1000 -10 {score}"


def lines_of(texts: Iterable[str]) -> str:
    return "".join(f"{text}\n" for text in texts)


def main() -> None:
    signal.signal(signal.SIGPIPE, signal.SIG_DFL)  # as in __main__.py
    parser = argparse.ArgumentParser(prog="python -m nmsfilter.convert", description="Converts lines of detectionjson.")
    formats = parser.add_subparsers(dest="format", required=True)
    outputs = {"coco": "file of results", "mot": "file of tracks", "kitti": "folder for a file a picture"}
    for name, output in outputs.items():
        command = formats.add_parser(name)
        command.add_argument("lines", type=pathlib.Path, help="file of lines")
        command.add_argument("output", type=pathlib.Path, help=output)
        if name == "coco":
            annotations = "COCO's file of pictures and categories"
            command.add_argument("--annotations", type=pathlib.Path, required=True, help=annotations)
        if name != "mot":
            command.add_argument("--pictures", type=pathlib.Path, help="file with each picture's name, in order")
    options = parser.parse_args()
    try:
        lines = frames(options.lines)
        if options.format == "coco":
            annotations = json.loads(options.annotations.read_text("utf-8"))
            options.output.write_text(json.dumps(coco(lines, annotations, options.pictures)))
        elif options.format == "mot":
            options.output.write_text(lines_of(mot(lines)))
        else:
            texts = {name: lines_of(kitti(frame)) for name, frame in named(lines, options.pictures)}
            options.output.mkdir(parents=True, exist_ok=True)
            for name, text in texts.items():
                (options.output / pathlib.PurePath(name).with_suffix(".txt")).write_text(text, "utf-8")
    except (ConvertError, OSError, KeyError) as error:
        sys.exit(f"nmsfilter.convert: {error}")


if __name__ == "__main__":
    main()
