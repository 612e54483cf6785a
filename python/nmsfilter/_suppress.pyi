# SPDX-License-Identifier: MIT OR Apache-2.0
from typing import Generic, NamedTuple, TypeVar

from ._detections import Floats, Integers

Classes = TypeVar("Classes")

class MergedBoxes(NamedTuple, Generic[Floats, Integers, Classes]):
    boxes: Floats
    scores: Floats
    classes: Classes
    keepers: Integers
    merged: Integers
    merged_ends: Integers

    def merged_into(self, index: int) -> Integers: ...
