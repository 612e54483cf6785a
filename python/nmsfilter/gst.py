# SPDX-License-Identifier: MIT OR Apache-2.0
"""Arrays attached to GStreamer's buffers for the element nmsfilter, and the regions that it attaches as NumPy arrays.

Importing this module makes the elements of this package (nmsfilter, ortinference) known to GStreamer, also if
Gst.init has been called. It needs GStreamer 1.20 or later of the distribution, since tensors are custom metadata; attach and regions also need PyGObject and
NumPy.
"""

from __future__ import annotations

import ctypes
import math
import operator
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
#: The folder with the plugins. On import the folders in it were added to GST_PLUGIN_PATH, after those there, except that of
#: a plugin which GStreamer finds in a folder of its own.
PLUGIN_FOLDER = str(_FOLDER / "plugins")


def _own_folders() -> list[str]:
    """The folders of GStreamer's own plugins, as GStreamer chooses them."""
    for name in ("GST_PLUGIN_SYSTEM_PATH_1_0", "GST_PLUGIN_SYSTEM_PATH"):
        if name in os.environ:
            return os.environ[name].split(os.pathsep)
    data = os.environ.get("XDG_DATA_HOME") or os.path.expanduser("~/.local/share")
    folders = [os.path.join(data, "gstreamer-1.0/plugins")]
    with open("/proc/self/maps", encoding="utf-8", errors="replace") as maps:
        libraries = {line.split(maxsplit=5)[5].strip() for line in maps if "/libgstreamer-1.0.so" in line}
    return folders + [os.path.join(os.path.dirname(library), "gstreamer-1.0") for library in sorted(libraries)]


def _add_plugins() -> None:
    # GStreamer does not read the second variable if the first is set.
    name = "GST_PLUGIN_PATH_1_0" if "GST_PLUGIN_PATH_1_0" in os.environ else "GST_PLUGIN_PATH"
    path = list(filter(None, os.environ.get(name, "").split(os.pathsep)))
    # Who has not imported it cannot have called Gst.init.
    Gst = getattr(sys.modules.get("gi.repository"), "Gst", None)
    own = _own_folders()
    for file in Path(PLUGIN_FOLDER).glob("*/*.so"):
        plugin, folder = file.parent.name, str(file.parent)
        if any(os.path.exists(os.path.join(other, file.name)) for other in own):
            continue
        if folder not in path:
            path.append(folder)
            os.environ[name] = os.pathsep.join(path)
        if Gst is not None and Gst.is_initialized() and Gst.Registry.get().find_plugin(plugin) is None:
            Gst.Registry.get().scan_path(folder)


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
    library.nmsfilter_gst_read_classes.argtypes = [pointer, size, pointer, size, size, ctypes.POINTER(size)]
    return library


_library = _load()
_add_plugins()

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


def _pair(name: str, what: str, value: Any) -> tuple[int, int]:
    """Two numbers of at least 1; zeros, which the library takes as unknown, if the value is None."""
    if value is None:
        return 0, 0
    try:
        first, second = map(operator.index, value)
    except (TypeError, ValueError):
        raise TypeError(f"{name}: expected {what}, got {value!r}") from None
    if not (1 <= first < 2**31 and 1 <= second < 2**31):
        raise InputError(f"{name}: expected {what}, each at least 1, got {value!r}; leave it out if it is unknown")
    return first, second


def model(
    size: tuple[int, int] | None = None,
    *,
    letterbox: str | None = None,
    labels: Sequence[str] = (),
    end2end: bool = False,
    task: str | None = None,
    keypoint_shape: tuple[int, int] | None = None,
    keypoint_layout: str | None = None,
    suppressed: bool = False,
    queries: int | None = None,
) -> Caps:
    """Describes a model: make it once, and pass it to attach with each frame.

    size: width and height of the model's input. letterbox: how frames were fitted into it: "none" (stretched), "center" (the
    shorter side rounded to the nearest pixel, as Ultralytics) or "top-left" (rounded down, as YOLOX). end2end: whether the model selects the detections itself. task: such as "detect" or "pose".
    keypoint_layout: the meaning of the keypoints of every class, "coco-17" (a person), "face-5" or "points" (any other);
    without it, the labels of classes decide. suppressed: whether the detections need no suppression. queries: how many best
    pairs of box and class the detections are, as of RT-DETR with sigmoid; without it, a box has one class.
    """
    if queries is not None and not 1 <= operator.index(queries) < 2**31:
        raise InputError(f"queries: expected the number of pairs of box and class, at least 1, got {queries!r}")
    if letterbox is not None and letterbox not in LETTERBOXES:
        raise InputError(f"letterbox: expected one of {', '.join(LETTERBOXES)}, got {letterbox!r}")
    width, height = _pair("size", "width and height of the model's input in pixels", size)
    count, components = _pair("keypoint_shape", "the number of keypoints, and 2 or 3 numbers of each", keypoint_shape)
    if components not in (0, 2, 3):
        raise InputError(f"keypoint_shape: expected keypoints of 2 (x, y) or 3 (x, y, visibility) numbers, got {components}")
    if isinstance(labels, (str, bytes)):
        raise TypeError(f"labels: expected a list of names, got {labels!r}; a single name is [{labels!r}]")
    labels = list(labels)
    for index, label in enumerate(labels):
        if not isinstance(label, str):
            raise TypeError(f"labels[{index}]: expected a name, got {label!r}")
        if "\0" in label:
            raise InputError(f"labels[{index}]: expected a name without zero bytes, got {label!r}")
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
        keypoint_layout=keypoint_layout.encode() if keypoint_layout else None,
        suppressed=suppressed,
        queries=queries or 0,
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
    region: Sequence[int] | None = None,
    parent: int | None = None,
    stream: Any = None,
) -> None:
    """Attaches a model's outputs to a Gst.Buffer, which nothing else may refer to yet: {name: array}.

    Arrays in host memory and on GPUs are not copied: they are kept until GStreamer frees the buffer, and must not be
    written until then. Work that writes them is enqueued before the call, to the current stream of their library (or to
    stream). The names are those of the model's outputs; nmsfilter chooses a decoder by known ones.

    If the model ran on a part of the frame, region is the part's (left, top, width, height) in pixels of the frame. Each
    part is attached with a call of its own. parent is the id of a region of interest that has these pixels.
    """
    address = _address(buffer)
    if not isinstance(tensors, Mapping):
        raise TypeError(
            f"tensors: expected a dictionary from the names of the model's outputs to arrays, got {type(tensors).__qualname__}"
        )
    if not tensors:
        raise InputError("tensors: expected the arrays of a model's outputs, got none")
    for name in tensors:
        if not isinstance(name, str):
            raise TypeError(f"tensors: expected the names of outputs as keys, got {name!r}")
    if model is not None and not isinstance(model, Caps):
        raise TypeError(f"model: expected what model() returns, got {model!r}")
    quantization = _quantizations(quantization, tensors)
    sides = _region(region, parent)
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
                region=sides,
                has_parent=parent is not None,
                parent=parent or 0,
            )
            tensor.scale, tensor.zero_point = quantization.get(name, (0.0, 0))
            _check(_library.nmsfilter_gst_attach_tensor(address, tensor))
        except BaseException:
            _core.release_held(held)
            raise


def _region(region: Sequence[int] | None, parent: int | None) -> tuple[int, ...]:
    """Left, top, width and height of a part of the frame; zeros without a part."""
    if parent is not None:
        if region is None:
            raise InputError(f"parent: expected a region with it, got parent={parent!r} alone")
        if not isinstance(parent, int) or abs(parent) >= 2**31:
            raise InputError(f"parent: expected the id of a region of interest, got {parent!r}")
    if region is None:
        return (0, 0, 0, 0)
    expected = "region: expected (left, top, width, height) in pixels, with a width and a height of 1 or more"
    try:
        left, top, width, height = sides = tuple(operator.index(side) for side in region)
    except (TypeError, ValueError):
        raise InputError(f"{expected}, got {region!r}") from None
    if min(left, top) < 0 or min(width, height) < 1 or max(sides) >= 2**31:
        raise InputError(f"{expected}, got {region!r}")
    return sides


def _quantizations(quantization: Any, tensors: Mapping[str, Any]) -> dict[str, tuple[float, int]]:
    """Scale and zero point of tensors by their names."""
    expected = "quantization: expected a dictionary from names of tensors to (scale, zero point)"
    if quantization is None:
        return {}
    if not isinstance(quantization, Mapping):
        raise TypeError(f"{expected}, got {quantization!r}")
    found = {}
    for name, pair in quantization.items():
        if name not in tensors:
            raise InputError(f"{expected}, got the name {name!r}; the tensors are {', '.join(tensors)}")
        try:
            scale, zero_point = pair
            found[name] = (float(scale), operator.index(zero_point))
        except (TypeError, ValueError):
            raise InputError(f"{expected} with a scale above 0, got {pair!r} for {name!r}") from None
        if abs(found[name][1]) >= 2**31 or not 0 < found[name][0] < math.inf:
            raise InputError(f"{expected} with a scale above 0, got {pair!r} for {name!r}")
    return found


def regions(buffer: Any) -> Regions:
    """The regions of interest of a Gst.Buffer, in the order in which they were attached: nmsfilter's best first.

    The result is a copy: it does not depend on the buffer.
    """
    from ._regions import read  # NumPy, which the rest does not need.

    return read(_library, _check, _address(buffer))
