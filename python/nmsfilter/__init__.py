# SPDX-License-Identifier: MIT OR Apache-2.0
"""Non-maximum suppression and decoding of detector outputs, on the CPU and on NVIDIA GPUs.

nms and batched_nms are those of torchvision.ops; nms_rotated and batched_nms_rotated take oriented boxes. suppress merges
boxes or lowers scores. decode, and Decoder for many calls, turn the raw outputs of a detector into detections. Arrays are
those of NumPy, PyTorch, CuPy, JAX, or any object with __dlpack__, __cuda_array_interface__ or __array_interface__; results
are arrays of the same library, in the same memory. nmsfilter.gst attaches arrays to GStreamer's buffers and reads regions.

`python -m nmsfilter` tests what works on this machine.
"""

from ._core import (
    Array,
    Decoder,
    Detections,
    __version__,
    batched_nms,
    batched_nms_rotated,
    decoders,
    nms,
    nms_rotated,
    slices,
    suppress,
)
from ._decode import BatchDecoder, decode
from ._detections import ImageDetections
from ._errors import InputError, MisreadWarning
from ._signature import Signature, signature
from ._suppress import MergedBoxes

__all__ = [
    "Array",
    "BatchDecoder",
    "Decoder",
    "Detections",
    "ImageDetections",
    "InputError",
    "MergedBoxes",
    "MisreadWarning",
    "Signature",
    "__version__",
    "batched_nms",
    "batched_nms_rotated",
    "decode",
    "decoders",
    "nms",
    "nms_rotated",
    "signature",
    "slices",
    "suppress",
]
