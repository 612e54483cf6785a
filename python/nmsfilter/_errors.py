# SPDX-License-Identifier: MIT OR Apache-2.0
"""Exceptions."""


class InputError(ValueError, RuntimeError):
    """An argument has a wrong value or shape. The message has what was expected, what came and what to do.

    It is a RuntimeError, too, because torchvision raises that.
    """
