# SPDX-License-Identifier: MIT OR Apache-2.0
"""Exceptions and warnings."""

import sys
import warnings


class InputError(ValueError, RuntimeError):
    """An argument has a wrong value or shape. The message has what was expected, what came and what to do.

    It is a RuntimeError, too, because torchvision raises that.
    """


class MisreadWarning(UserWarning):
    """Outputs are probably not of the decoder or the settings with which they are read, so that boxes are wrong, or nothing is
    detected.

    Each Decoder issues each warning once. warnings.simplefilter("error", nmsfilter.MisreadWarning) makes exceptions of them.
    """


def warn_misread(text: str) -> None:
    """Issues a warning for the caller outside of this package."""
    level = 2
    frame = sys._getframe(1)
    while frame.f_back is not None and frame.f_globals.get("__name__", "").startswith("nmsfilter."):
        frame = frame.f_back
        level += 1
    warnings.warn(text, MisreadWarning, stacklevel=level)
