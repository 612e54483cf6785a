# SPDX-License-Identifier: MIT OR Apache-2.0
"""Runs a model with ONNX Runtime's own Python interface, on the CPU.

usage: run_model.py MODEL.onnx INPUT FOLDER

INPUT is a file with the elements of the model's input in f32. The input must have fixed dimensions. Writes the elements
of each output to FOLDER/NAME.bin, in f32.
"""

import os
import sys

import numpy as np
import onnxruntime


def main():
    model, path, folder = sys.argv[1:]
    options = onnxruntime.SessionOptions()
    options.log_severity_level = 3
    session = onnxruntime.InferenceSession(model, options, providers=["CPUExecutionProvider"])
    (model_input,) = session.get_inputs()
    elements = np.fromfile(path, "<f4").reshape(model_input.shape)
    results = session.run(None, {model_input.name: elements})
    for output, elements in zip(session.get_outputs(), results):
        elements.astype("<f4").tofile(os.path.join(folder, output.name + ".bin"))


main()
