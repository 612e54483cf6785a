# SPDX-License-Identifier: MIT OR Apache-2.0
"""nms and batched_nms, also of oriented boxes, as operators of PyTorch, for torch.compile with fullgraph=True and torch.export.

    from nmsfilter.torch import nms

They take what nmsfilter's functions of these names take, except stream, and give the same indices. Programs that run an
exported model import this module first. Without it, torch.compile leaves its graph at each call, and torch.export raises
InputError. Decoder has no operator: call it with the outputs of the compiled model.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch

import nmsfilter


def _operator(function: Callable[..., Any], groups: str = "") -> Callable[..., torch.Tensor]:
    schema = (
        f"(Tensor boxes, Tensor scores, {groups}float iou_threshold, *, str? method=None, str? overlap=None, "
        "int max_detections=0) -> Tensor"
    )
    name = f"nmsfilter::{function.__name__}"
    operator = torch.library.custom_op(name, function, mutates_args=(), schema=schema)

    @operator.register_fake
    def _(boxes: torch.Tensor, *arguments: Any, **settings: Any) -> torch.Tensor:
        return boxes.new_empty([torch.library.get_ctx().new_dynamic_size()], dtype=torch.int64)

    operator.__doc__ = function.__doc__
    return operator


nms = _operator(nmsfilter.nms)
batched_nms = _operator(nmsfilter.batched_nms, "Tensor idxs, ")
nms_rotated = _operator(nmsfilter.nms_rotated)
batched_nms_rotated = _operator(nmsfilter.batched_nms_rotated, "Tensor idxs, ")
