# SPDX-License-Identifier: MIT OR Apache-2.0
"""The result of suppress; the types are in _suppress.pyi."""

from __future__ import annotations

from typing import Any, NamedTuple


class MergedBoxes(NamedTuple):
    """The boxes that remain, best first. All arrays but merged have one element per box."""

    boxes: Any
    """[M, 4], float32: left, upper, right, lower edge."""
    scores: Any
    """[M], float32: the final scores."""
    classes: Any | None
    """[M], int64: the classes; None if none were passed."""
    keepers: Any
    """[M], int64: the index of the box from which the class is."""
    merged: Any
    """int64: the indices of the boxes that were merged into the keepers, one list after the other."""
    merged_ends: Any
    """[M], int64: the end of each box's list in merged."""

    def merged_into(self, index: int) -> Any:
        """The indices of the boxes that were merged into the keeper of this box."""
        return self.merged[self.merged_ends[index - 1] if index > 0 else 0 : self.merged_ends[index]]
