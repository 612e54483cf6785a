# SPDX-License-Identifier: MIT OR Apache-2.0
"""Arrays attached to GStreamer's buffers for the element nmsfilter, and the regions that it attaches as NumPy arrays.

Importing this module makes the elements of this package (nmsfilter, ortinference) known to GStreamer, also if
Gst.init has been called. It needs GStreamer 1.20 or later of the distribution; attach and regions also need PyGObject and
NumPy.
"""

from __future__ import annotations

import ctypes
import os
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from . import _core
from ._errors import InputError
from ._gst_types import ELEMENT_TYPES, LETTERBOXES, Memory, Model, Tensor

if TYPE_CHECKING:
    from ._regions import Regions

__all__ = ["PLUGIN_FOLDER", "Caps", "attach", "model", "regions"]

_FOLDER = Path(__file__).parent / "_libs"
#: The folder with the plugins. On import it was added to GST_PLUGIN_PATH.
PLUGIN_FOLDER = str(_FOLDER / "plugins")


def _add_plugins() -> None:
    path = os.environ.get("GST_PLUGIN_PATH", "")
    if PLUGIN_FOLDER not in path.split(os.pathsep):
        os.environ["GST_PLUGIN_PATH"] = os.pathsep.join(filter(None, [PLUGIN_FOLDER, path]))
    # Who has not imported it cannot have called Gst.init.
    Gst = getattr(sys.modules.get("gi.repository"), "Gst", None)
    if Gst is not None and Gst.is_initialized():
        Gst.Registry.get().scan_path(PLUGIN_FOLDER)


def _load() -> ctypes.CDLL:
    file = _FOLDER / "libnmsfilter_gst.so"
    if not file.exists():
        raise ImportError(f"there is no {file}: this package was built without GStreamer; install a wheel that has it")
    try:
        library = ctypes.CDLL(str(file))
    except OSError as error:
        raise ImportError(
            f"GStreamer cannot be loaded ({error}); install GStreamer 1.20 or later, "
            "on Debian and Ubuntu: apt install gstreamer1.0-tools gstreamer1.0-plugins-base python3-gi gir1.2-gstreamer-1.0"
        ) from None
    pointer, size = ctypes.c_void_p, ctypes.c_size_t
    library.nmsfilter_gst_error_text.restype = ctypes.c_char_p
    library.nmsfilter_gst_model_caps.argtypes = [ctypes.POINTER(Model), ctypes.POINTER(pointer)]
    library.nmsfilter_gst_attach_tensor.argtypes = [pointer, ctypes.POINTER(Tensor)]
    library.nmsfilter_gst_read_regions.argtypes = [pointer, pointer, size, size, ctypes.POINTER(size)]
    return library


_add_plugins()
_library = _load()

#: The errors of the library whose text names what a C program does.
_WORDS = (
    (
        "expected a writable GstBuffer, got one with several references; call gst_buffer_make_writable",
        "expected a buffer that nothing else refers to; attach to it before it is pushed, or to a copy (buffer.copy())",
    ),
)


def _check(status: int) -> None:
    if status == 0:
        return
    text = _library.nmsfilter_gst_error_text().decode()
    for theirs, ours in _WORDS:
        text = text.replace(theirs, ours)
    # Of the GPU, of GStreamer, and of the library itself.
    raise RuntimeError(text) if status in (2, 4, 5) else InputError(text)


def _address(buffer: Any) -> int:
    """The GstBuffer. hash() of a PyGObject wrapper of a C structure is the structure's address: PyGObject has no other
    function for it that all versions share."""
    if type(buffer).__name__ != "Buffer" or not type(buffer).__module__.startswith(("gi.", "__gi__")):
        raise TypeError(f"buffer: expected a Gst.Buffer, got {type(buffer).__module__}.{type(buffer).__qualname__}")
    return hash(buffer)


class Caps:
    """What is known of a model, for attach: made once by model()."""

    def __init__(self, address: int) -> None:
        self._address = address

    def __del__(self) -> None:
        _unref(self._address)


_unref = ctypes.CDLL("libgstreamer-1.0.so.0").gst_mini_object_unref
_unref.argtypes, _unref.restype = [ctypes.c_void_p], None


def model(
    size: tuple[int, int] | None = None,
    *,
    letterbox: str | None = None,
    labels: Sequence[str] = (),
    end2end: bool = False,
    task: str | None = None,
    keypoint_shape: tuple[int, int] | None = None,
) -> Caps:
    """Describes a model: make it once, and pass it to attach with each frame.

    size: width and height of the model's input. letterbox: how frames were fitted into it: "none" (stretched), "center" (the
    shorter side rounded to the nearest pixel, as Ultralytics) or "top-left" (rounded down, as YOLOX). end2end: whether the model selects the detections itself. task: such as "detect" or "pose".
    """
    if letterbox is not None and letterbox not in LETTERBOXES:
        raise InputError(f"letterbox: expected one of {', '.join(LETTERBOXES)}, got {letterbox!r}")
    width, height = size or (0, 0)
    count, components = keypoint_shape or (0, 0)
    names = (ctypes.c_char_p * len(labels))(*(label.encode() for label in labels))
    info = Model(
        size=ctypes.sizeof(Model),
        width=width,
        height=height,
        letterbox=LETTERBOXES.get(letterbox or "", 0),
        end2end=end2end,
        labels=ctypes.cast(names, ctypes.c_void_p) if labels else None,
        label_count=len(labels),
        task=task.encode() if task else None,
        keypoint_count=count,
        keypoint_components=components,
    )
    caps = ctypes.c_void_p()
    _check(_library.nmsfilter_gst_model_caps(info, caps))
    assert caps.value is not None
    return Caps(caps.value)


def attach(
    buffer: Any,
    tensors: Mapping[str, Any],
    *,
    model: Caps | None = None,
    quantization: Mapping[str, tuple[float, int]] | None = None,
    source: str | None = None,
    stream: Any = None,
) -> None:
    """Attaches a model's outputs to a Gst.Buffer, which nothing else may refer to yet: {name: array}.

    Arrays in host memory and on GPUs are not copied: they are kept until GStreamer frees the buffer, and must not be
    written until then. Work that writes them is enqueued before the call, to the current stream of their library (or to
    stream). The names are those of the model's outputs; nmsfilter chooses a decoder by known ones.
    """
    address = _address(buffer)
    for name, array in tensors.items():
        data, size, dtype, shape, device, event, release, held = _core.hold(array, f"tensors[{name!r}]", stream)
        try:
            tensor = Tensor(
                size=ctypes.sizeof(Tensor),
                id=name.encode(),
                element_type=ELEMENT_TYPES[dtype],
                dimensions=len(shape),
                shape=shape,
                memory=Memory.HOST if device < 0 else Memory.DEVICE,
                cuda_device=max(device, 0),
                data=data,
                bytes=size,
                release=release,
                user_data=held,
                cuda_event=event,
                model=model._address if model is not None else None,
                source=source.encode() if source else None,
            )
            if quantization and name in quantization:
                tensor.scale, tensor.zero_point = quantization[name]
            _check(_library.nmsfilter_gst_attach_tensor(address, tensor))
        except BaseException:
            _core.release_held(held)
            raise


def regions(buffer: Any) -> Regions:
    """The regions of interest of a Gst.Buffer, in the order in which they were attached: nmsfilter's best first.

    The result is a copy: it does not depend on the buffer.
    """
    from ._regions import read  # NumPy, which the rest does not need.

    return read(_library.nmsfilter_gst_read_regions, _check, _address(buffer))
