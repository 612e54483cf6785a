# SPDX-License-Identifier: MIT OR Apache-2.0
"""signature: what is known of a model from the program that exported it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from ._core import describe, fit, output_id
from ._errors import InputError

_TYPES = {
    "tensor(float)": "f32",
    "tensor(float16)": "f16",
    "tensor(int8)": "i8",
    "tensor(uint8)": "u8",
    "tensor(int32)": "i32",
    "tensor(int64)": "i64",
}
_ARRAYS = {"f32": "float32", "f16": "float16", "i32": "int32", "i64": "int64"}


@dataclass(frozen=True)
class Signature:
    """What a model's inputs and outputs, or its metadata, say about it.

    - name: the signature's name, as in docs/usage.md; "metadata" if it is described by these, as Ultralytics' models are.
    - decoder: settings of Decoder, with the labels if the metadata have them.
    - letterbox: how images are fitted into the model's input: "none" (stretched), "center" or "top-left".
    - size: (width, height) of the input. None if it is dynamic and has no usual size.
    - layout: "nchw" or "nhwc".
    - channels: "rgb" or "bgr".
    - range, mean, std: a channel's value v, 0 to 255, becomes (low + v * (high - low) / 255 - mean) / std; for red, green and
      blue. For bytes, the range is (0, 255).
    - unread: the outputs with masks or keypoints, which are not read.
    - pixels_vary: models of the exporter have other pixels, too: channels, range, mean and std are those of the model's
      configuration.
    """

    name: str
    decoder: dict[str, Any]
    letterbox: str
    size: tuple[int, int] | None
    layout: str
    range: tuple[float, float]
    mean: tuple[float, float, float]
    std: tuple[float, float, float]
    channels: str
    pixels_vary: bool
    unread: list[str]
    _picture: str
    _outputs: list[str]
    _ids: dict[str, tuple[str, str | None]]
    _constants: dict[str, tuple[str, str, int]]

    def place(self, frame_size: tuple[int, int]) -> tuple[int, int, int, int]:
        """Where a frame of this (width, height) is in the model's input: left, top, width, height. Around it is gray, 114."""
        if self.size is None:
            raise InputError("size: expected the size of the model's input, which is dynamic; fit the frame yourself")
        return fit(frame_size, self.size, self.letterbox)

    def feeds(self, picture: Any) -> dict[str, Any]:
        """The inputs of a run: the picture, with the dimensions of the model's input, and those with constant numbers."""
        import numpy

        shape = picture.shape[-3:]
        height, width = shape[1:] if self.layout == "nchw" else shape[:2]
        batch = picture.shape[0] if len(picture.shape) == 4 else 1
        feeds = {self._picture: picture}
        for name, (numbers, element, dimensions) in self._constants.items():
            if numbers == "ones":
                values = numpy.ones((batch, 2) if dimensions == 2 else (batch, height, width))
            else:
                pair = (width, height) if numbers == "width-height" else (height, width)
                values = numpy.tile(pair, (batch, 1))
            feeds[name] = values.astype(_ARRAYS[element])
        return feeds

    def tensors(self, outputs: Any) -> dict[str, Any]:
        """The outputs of a run, all in the model's order or by their names, by the ids from which a decoder is chosen.

        InputError if rows are of several pictures, as some models have them for a batch, or if numbers contradict the signature.
        """
        if isinstance(outputs, Mapping):
            outputs = [outputs[name] for name in self._outputs]
        if len(outputs) != len(self._outputs):
            raise InputError(f"outputs: expected the arrays of {', '.join(self._outputs)}, got {len(outputs)}")
        named = zip(self._outputs, outputs)
        return {self._id(name, output): output for name, output in named if name in self._ids}

    def _id(self, name: str, output: Any) -> str:
        usual, form = self._ids[name]
        return usual if form is None else output_id(self.name, form, name, output)


def _tensors(nodes: Any) -> list[tuple[str, str, list[int]]]:
    def length(value: Any) -> int:
        return value if isinstance(value, int) and value >= 0 else -1

    return [(node.name, _TYPES.get(node.type, "other"), [length(value) for value in node.shape]) for node in nodes]


def signature(session: Any, name: str | None = None) -> Signature | None:
    """The signature of a model, by its metadata, or the names, element types and dimensions of all its inputs and outputs.

    session is an onnxruntime.InferenceSession, or has its methods get_inputs and get_outputs. name is the signature that is
    taken; without it, the metadata, or the only signature. None if the exporter is not known. InputError if the model has the signatures of several,
    or others than name.
    """
    if not hasattr(session, "get_inputs"):
        got = type(session).__name__
        raise TypeError(f"session: expected an onnxruntime.InferenceSession, which has the model of a file, got {got}")
    metadata = session.get_modelmeta().custom_metadata_map if hasattr(session, "get_modelmeta") else {}
    facts = describe(_tensors(session.get_inputs()), _tensors(session.get_outputs()), metadata, name)
    return None if facts is None else Signature(**facts)
