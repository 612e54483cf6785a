# SPDX-License-Identifier: MIT OR Apache-2.0
"""Runs an ONNX detector on one picture and records its outputs as .npy.

usage: record.py MODEL.onnx PICTURE.rgba WIDTH HEIGHT LOW HIGH FOLDER

PICTURE.rgba contains WIDTH x HEIGHT pixels of four bytes. If the model's input has another size, the picture is
letterboxed: it is scaled bilinearly without distortion, and gets gray borders on both sides. LOW and HIGH are the values
of black and white. Writes each output NAME to FOLDER/NAME.npy.
"""

import os
import sys

import numpy as np
import onnxruntime

GRAY = 114
# Side of the input, if a model accepts any size.
SIDE = 640


def scaled(picture, width, height):
    """Scales bilinearly with aligned pixel centers, without smoothing. The result is rounded to bytes."""

    def taps(size, scaled_size):
        position = np.clip((np.arange(scaled_size) + 0.5) * size / scaled_size - 0.5, 0, size - 1)
        low = position.astype(int)
        return low, np.minimum(low + 1, size - 1), position - low

    top, bottom, down = taps(picture.shape[0], height)
    left, right, along = taps(picture.shape[1], width)
    down, along = down[:, None, None], along[None, :, None]
    picture = picture.astype(np.float32)
    upper = picture[top][:, left] * (1 - along) + picture[top][:, right] * along
    lower = picture[bottom][:, left] * (1 - along) + picture[bottom][:, right] * along
    return np.rint(upper * (1 - down) + lower * down).astype(np.uint8)


def letterboxed(picture, width, height):
    if picture.shape[:2] == (height, width):
        return picture
    ratio = min(width / picture.shape[1], height / picture.shape[0])
    w, h = round(picture.shape[1] * ratio), round(picture.shape[0] * ratio)
    x, y = (width - w) // 2, (height - h) // 2
    canvas = np.full((height, width, 3), GRAY, np.uint8)
    canvas[y : y + h, x : x + w] = scaled(picture, w, h)
    return canvas


def main():
    model, picture, width, height, low, high, folder = sys.argv[1:]
    options = onnxruntime.SessionOptions()
    options.log_severity_level = 3
    session = onnxruntime.InferenceSession(model, options, providers=["CPUExecutionProvider"])
    model_input = session.get_inputs()[0]
    size = [side if isinstance(side, int) else SIDE for side in model_input.shape[2:]]

    pixels = np.fromfile(picture, np.uint8).reshape(int(height), int(width), 4)[:, :, :3]
    low, high = np.float32(low), np.float32(high)
    pixels = letterboxed(pixels, size[1], size[0]).astype(np.float32) * ((high - low) / 255) + low
    half = model_input.type == "tensor(float16)"
    planes = pixels.transpose(2, 0, 1)[None].astype(np.float16 if half else np.float32)
    results = session.run(None, {model_input.name: planes})
    for output, elements in zip(session.get_outputs(), results):
        np.save(os.path.join(folder, output.name), elements)


main()
