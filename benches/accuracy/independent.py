# SPDX-License-Identifier: MIT OR Apache-2.0
"""Detects objects with NumPy and ONNX Runtime's Python interface. No code of this project runs.

The picture is resized and letterboxed in floating point, like in the programs with which the models' authors evaluate
(Ultralytics: centered, rounded to the nearest pixel; YOLOX: top left, rounded down). There are two differences:
pictures are not grouped by aspect ratio, and boxes outside of the picture are left out.
"""

import numpy as np
import onnxruntime

BORDER = 114
TYPES = {"tensor(float)": np.float32, "tensor(float16)": np.float16, "tensor(uint8)": np.uint8}
PROVIDERS = {"cpu": "CPUExecutionProvider", "cuda": "CUDAExecutionProvider"}


class ProviderError(Exception):
    """ONNX Runtime cannot run models on this processor."""


def positions(pixels, side):
    """Returns for each pixel of a resized side the samples before and after its center, and the weight of the second."""
    center = np.clip((np.arange(pixels) + 0.5) * side / pixels - 0.5, 0, side - 1)
    before = np.floor(center).astype(int)
    return before, np.minimum(before + 1, side - 1), center - before


def resize(picture, width, height):
    """Resizes bilinearly without a filter, with pixel centers at halves. The result has 8 bits."""
    above, below, weight = positions(height, picture.shape[0])
    weight = weight[:, None, None]
    rows = picture[above] * (1 - weight) + picture[below] * weight
    left, right, weight = positions(width, picture.shape[1])
    weight = weight[None, :, None]
    return np.rint(rows[:, left] * (1 - weight) + rows[:, right] * weight).astype(np.uint8)


def letterbox(picture, size, place):
    """Places the picture in the model's input. Returns the input, the scale, and the picture's left and top."""
    (height, width), (model_width, model_height) = picture.shape[:2], size
    if place == "none":
        ratio = np.array([model_width / width, model_height / height])
        return resize(picture, model_width, model_height), ratio, np.zeros(2)
    ratio = min(model_width / width, model_height / height)
    round_side = round if place == "center" else int
    new_width, new_height = (max(round_side(side * ratio), 1) for side in (width, height))
    left, top = 0, 0
    if place == "center":
        left, top = (model_width - new_width) // 2, (model_height - new_height) // 2
    canvas = np.full((model_height, model_width, 3), BORDER, np.uint8)
    canvas[top : top + new_height, left : left + new_width] = resize(picture, new_width, new_height)
    return canvas, np.array([ratio, ratio]), np.array([left, top])


def on_grids(boxes, size):
    """Converts YOLOX's center boxes before decoding, one for each cell in the grids of three strides, to pixels."""
    cells = []
    for stride in (8, 16, 32):
        y, x = np.mgrid[: size[1] // stride, : size[0] // stride]
        cells.append(np.stack([x.ravel(), y.ravel(), np.full(x.size, stride)], axis=1))
    cells = np.concatenate(cells)
    stride = cells[:, 2:]
    return np.concatenate([boxes[:, :2] + cells[:, :2], np.exp(boxes[:, 2:])], axis=1) * stride


def decode(family, outputs, size):
    """Returns center boxes in pixels of the model's input, and the scores of all classes."""
    if family == "ultraface":
        scores, corners = (output[0].astype(np.float32) for output in outputs)
        least, most = corners[:, :2] * size, corners[:, 2:] * size
        return np.concatenate([(least + most) / 2, most - least], axis=1), scores[:, 1:]
    (rows,) = outputs[0].astype(np.float32)
    if family == "yolov8":
        rows = rows.T if rows.shape[0] < rows.shape[1] else rows
        return rows[:, :4], rows[:, 4:]
    boxes = on_grids(rows[:, :4], size) if family == "yolox-raw" else rows[:, :4]
    return boxes, rows[:, 4:5] * rows[:, 5:]


def suppress(boxes, scores, classes, threshold):
    """Returns the indices of the boxes that survive among boxes of their class. Boxes are sorted by descending score."""
    least, most = boxes[:, :2], boxes[:, 2:]
    areas = np.prod(most - least, axis=1)
    remains = np.ones(len(boxes), bool)
    for number in range(len(boxes)):
        if not remains[number]:
            continue
        later = number + 1 + np.flatnonzero(remains[number + 1 :] & (classes[number + 1 :] == classes[number]))
        shared = np.minimum(most[number], most[later]) - np.maximum(least[number], least[later])
        shared = np.prod(np.maximum(shared, 0), axis=1)
        remains[later[shared > threshold * (areas[number] + areas[later] - shared)]] = False
    return np.flatnonzero(remains)


class Detector:
    """A model with the settings of its input.

    The settings are `letterbox`, `range`, `channel-order`, `input-width`, `input-height`, `mean`,
    `std` and `threads`.
    """

    def __init__(self, path, family, settings, provider):
        if provider == "cuda":
            # Loads CUDA's libraries and cuDNN from the Python packages nvidia-*.
            onnxruntime.preload_dlls()
        options = onnxruntime.SessionOptions()
        options.log_severity_level = 3
        options.intra_op_num_threads = int(settings.get("threads", 0))
        self.session = onnxruntime.InferenceSession(path, options, providers=[PROVIDERS[provider]])
        used = self.session.get_providers()[0]
        if used != PROVIDERS[provider]:
            raise ProviderError(f"expected ONNX Runtime's {PROVIDERS[provider]}; this build or machine gives {used}")
        self.family = family
        (self.input,) = self.session.get_inputs()
        height, width = self.input.shape[2:]
        self.size = int(settings.get("input-width", width)), int(settings.get("input-height", height))
        self.letterbox = settings.get("letterbox", "center")
        self.is_bgr = settings.get("channel-order") == "bgr"
        numbers = {"range": "0,1", "mean": "0", "std": "1"}
        numbers = {name: settings.get(name, default).split(",") for name, default in numbers.items()}
        self.low, self.high = np.array(numbers["range"], float)
        self.mean, self.std = np.array(numbers["mean"], float), np.array(numbers["std"], float)

    def prepare(self, picture):
        """Returns the model's input, the picture's scale in it, and the picture's left and top."""
        canvas, ratio, offset = letterbox(picture, self.size, self.letterbox)
        values = (self.low + canvas * ((self.high - self.low) / 255) - self.mean) / self.std
        values = values[:, :, ::-1] if self.is_bgr else values
        values = values.transpose(2, 0, 1)[None].astype(TYPES[self.input.type])
        return np.ascontiguousarray(values), ratio, offset

    def run(self, values):
        return self.session.run(None, {self.input.name: values})

    def outputs(self, picture):
        """Returns boxes in pixels of the picture, which are not clipped, and the scores of all classes."""
        values, ratio, offset = self.prepare(picture)
        boxes, scores = decode(self.family, self.run(values), self.size)
        half = boxes[:, 2:] / 2
        corners = np.concatenate([boxes[:, :2] - half, boxes[:, :2] + half], axis=1)
        return (corners - np.tile(offset, 2)) / np.tile(ratio, 2), scores


def select(boxes, scores, size, settings):
    """Returns the detections as rows of class, left, top, right, bottom, score. The settings have nmsfilter's names."""
    threshold = float(settings.get("score-threshold", 0.25))
    inside = (boxes[:, 2:] > 0).all(axis=1) & (boxes[:, :2] < size).all(axis=1)
    if settings.get("multi-label") == "true":
        anchors, classes = np.nonzero((scores >= threshold) & inside[:, None])
    else:
        anchors = np.flatnonzero((scores.max(axis=1) >= threshold) & inside)
        classes = scores[anchors].argmax(axis=1)
    found = scores[anchors, classes]
    order = np.argsort(-found, kind="stable")
    anchors, classes, found = anchors[order], classes[order], found[order]
    kept = suppress(boxes[anchors], found, classes, float(settings.get("iou-threshold", 0.45)))
    kept = kept[: int(settings.get("max-detections", 1000))]
    clipped = np.clip(boxes[anchors[kept]], 0, np.tile(size, 2))
    return np.column_stack([classes[kept], clipped, found[kept]]).astype(float)
