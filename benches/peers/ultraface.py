# SPDX-License-Identifier: MIT OR Apache-2.0
"""Writes the candidates of UltraFace RFB-640 in a picture of many faces, down to a score of 0.05.

    python ultraface.py DATA OUT.csv

DATA is the folder of recorded data. Rows of OUT.csv are x1,y1,x2,y2,score in pixels of the model's input.
"""

import sys

import cv2
import numpy as np
import onnxruntime

data, out = sys.argv[1:]
options = onnxruntime.SessionOptions()
options.intra_op_num_threads = 1
session = onnxruntime.InferenceSession(
    f"{data}/data/models/version-RFB-640.onnx", options, providers=["CPUExecutionProvider"]
)
picture = cv2.cvtColor(cv2.imread(f"{data}/data/images/crowd_selfie.jpg"), cv2.COLOR_BGR2RGB)
picture = (cv2.resize(picture, (640, 480)).astype(np.float32) - 127) / 128
outputs = session.run(None, {session.get_inputs()[0].name: picture.transpose(2, 0, 1)[None]})
scores, boxes = sorted((output[0] for output in outputs), key=lambda output: output.shape[1])
is_candidate = scores[:, 1] >= 0.05
rows = np.column_stack([boxes * [640, 480, 640, 480], scores[:, 1]])[is_candidate]
np.savetxt(out, rows, fmt="%.9g", delimiter=",", header="x1,y1,x2,y2,score", comments="")
print(f"{len(rows)} candidates in {out}")
