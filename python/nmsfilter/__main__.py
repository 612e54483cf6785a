# SPDX-License-Identifier: MIT OR Apache-2.0
"""python -m nmsfilter: tests what works on this machine, and names what is missing.

The exit status is 0 if suppression and decoding on the CPU work. All else is optional.
"""

from __future__ import annotations

import ctypes
import importlib.util
import os
import platform
import signal
import struct
import sys

import nmsfilter
from nmsfilter import _core


class _Floats:
    """float32 numbers without NumPy."""

    def __init__(self, shape: tuple[int, ...], numbers: list[float]) -> None:
        self._numbers = (ctypes.c_float * len(numbers))(*numbers)
        self.__array_interface__ = {
            "version": 3,
            "typestr": "<f4",
            "shape": shape,
            "data": (ctypes.addressof(self._numbers), False),
        }


def _numbers(array: object, letter: str) -> tuple[float, ...]:
    interface = array.__array_interface__
    count = 1
    for side in interface["shape"]:
        count *= side
    size = struct.calcsize(letter)
    return struct.unpack(f"{count}{letter}", ctypes.string_at(interface["data"][0], count * size))


def _cpu() -> str:
    boxes = _Floats((3, 4), [0, 0, 10, 10, 1, 1, 11, 11, 20, 20, 30, 30])
    kept = _numbers(nmsfilter.nms(boxes, _Floats((3,), [0.8, 0.9, 0.7]), 0.5), "q")
    if kept != (1, 2):
        raise RuntimeError(f"nms: expected the boxes (1, 2), got {kept}; please report this")
    # A YOLOv8 output of one class: two boxes at one place, and one apart.
    count = 16
    rows = [[100, 104, 300], [100, 100, 300], [40, 40, 60], [40, 40, 60], [0.9, 0.6, 0.7]]
    padded = [number for row in rows for number in row + [0] * (count - len(row))]
    found = nmsfilter.decode({"yolo-v8-out": _Floats((1, 5, count), padded)}, max_detections=4)
    counts, boxes = _numbers(found.counts, "i"), _numbers(found.boxes, "f")
    if counts != (2,) or boxes[:8] != (80, 80, 120, 120, 270, 270, 330, 330):
        raise RuntimeError(f"decode: expected two boxes, got {counts} {boxes}; please report this")
    return f"{len(nmsfilter.decoders())} decoders"


def _gstreamer() -> str:
    import nmsfilter.gst as gst

    try:
        import gi
    except ImportError:
        raise ImportError(
            f"this Python ({sys.executable}) has no PyGObject; on Debian and Ubuntu: apt install python3-gi, and a virtual "
            "environment of the system's Python with --system-site-packages"
        ) from None
    try:
        gi.require_version("Gst", "1.0")
    except ValueError:
        raise ImportError(
            "PyGObject has no description of GStreamer; on Debian and Ubuntu: apt install gir1.2-gstreamer-1.0"
        ) from None
    from gi.repository import Gst

    Gst.init(None)
    found, missing = [], []
    for name in ("nmsfilter", "ortinference"):
        factory = Gst.ElementFactory.find(name)
        if factory is None:
            missing.append(name)
            continue
        file = factory.get_plugin().get_filename()
        owner = "of this package" if file.startswith(gst.PLUGIN_FOLDER) else "of another installation"
        found.append(f"{name} {owner}: {file}")
    if missing:
        raise RuntimeError(
            f"{Gst.version_string()} does not load the plugin with {', '.join(missing)}; gst-inspect-1.0 "
            f"{gst.PLUGIN_FOLDER}/*/libgst*.so has the reason"
        )
    return f"{Gst.version_string()}, elements {', '.join(found)}"


def _attach() -> str:
    import gi

    gi.require_version("GstApp", "1.0")
    from gi.repository import Gst, GstApp  # noqa: F401 (the methods of appsrc and appsink)

    import nmsfilter.gst as gst

    pipeline = Gst.parse_launch(
        "appsrc name=in format=time caps=video/x-raw,format=GRAY8,width=64,height=64,framerate=1/1 "
        "! nmsfilter backend=cpu ! appsink name=out sync=false"
    )
    pipeline.set_state(Gst.State.PLAYING)
    try:
        buffer = Gst.Buffer.new_allocate(None, 64 * 64, None)
        buffer.pts = 0
        windows = _Floats((3, 4), [10, 10, 20, 0.9, 11, 11, 20, 0.6, 40, 40, 20, 0.7])
        gst.attach(buffer, {"windows": windows}, model=gst.model((64, 64)))
        pipeline.get_by_name("in").emit("push-buffer", buffer)
        sample = pipeline.get_by_name("out").emit("try-pull-sample", 10 * Gst.SECOND)
        if sample is None:
            message = pipeline.get_bus().pop_filtered(Gst.MessageType.ERROR)
            raise RuntimeError(message.parse_error()[0].message if message else "nmsfilter gave no buffer in 10 s")
        found = gst.regions(sample.get_buffer())
        if found["left"].tolist() != [10, 40]:
            raise RuntimeError(f"expected regions at 10 and 40, got {found['left'].tolist()}; please report this")
    finally:
        pipeline.set_state(Gst.State.NULL)
    return "a tensor attached, its regions read"


def _inference() -> str:
    path = os.environ.get("ORT_DYLIB_PATH")
    if path:
        if not os.path.exists(path):
            raise RuntimeError(f"ORT_DYLIB_PATH is {path}, which does not exist")
        return path
    spec = importlib.util.find_spec("onnxruntime")
    if spec is None or not spec.submodule_search_locations:
        raise RuntimeError("ortinference needs ONNX Runtime: pip install onnxruntime, and set ORT_DYLIB_PATH to its library")
    folder = spec.submodule_search_locations[0]
    raise RuntimeError(f"set ORT_DYLIB_PATH to {folder}/capi/libonnxruntime.so.VERSION")


def main() -> int:
    signal.signal(signal.SIGPIPE, signal.SIG_DFL)  # a reader such as head ends the program
    print(f"nmsfilter {nmsfilter.__version__}, Python {platform.python_version()}, {platform.machine()}")
    try:
        import numpy

        print(f"{'NumPy':24} {numpy.__version__}")
    except ImportError:
        print(f"{'NumPy':24} no: results are nmsfilter.Array, and nmsfilter.gst has no regions")
    status = 0
    for name, test, is_needed in (
        ("CPU", _cpu, True),
        ("GPU", lambda: _core.test_gpu(0), False),
        ("GStreamer", _gstreamer, False),
        ("tensors and regions", _attach, False),
        ("ONNX Runtime", _inference, False),
    ):
        try:
            print(f"{name:24} works: {test()}")
        except Exception as error:
            print(f"{name:24} no: {error}")
            status = 1 if is_needed else status
    return status


if __name__ == "__main__":
    sys.exit(main())
