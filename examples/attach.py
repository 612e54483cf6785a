#!/usr/bin/env python3
# SPDX-License-Identifier: MIT OR Apache-2.0
"""Attaches a detector's output to a frame and prints the regions that nmsfilter attaches for it.

Needs PyGObject, GStreamer's introspection data (Debian: python3-gi, gir1.2-gst-plugins-base-1.0) and
the plugin where GStreamer finds it (GST_PLUGIN_PATH).
"""

import array
import ctypes
import math

import gi

gi.require_version("Gst", "1.0")
gi.require_version("GstApp", "1.0")
gi.require_version("GstVideo", "1.0")
from gi.repository import GLib, Gst, GstApp, GstVideo  # noqa: E402, F401 (GstApp: appsrc's methods)

Gst.init(None)

# PyGObject returns a copy of a metadata's structure, so the fields are set by GStreamer's own functions.
# hash() of a PyGObject wrapper of a C structure is the structure's address.
LIBRARY = ctypes.CDLL("libgstreamer-1.0.so.0")


def function(name, result, *arguments):
    found = getattr(LIBRARY, name)
    found.restype, found.argtypes = result, arguments
    return found


POINTER = ctypes.c_void_p
meta_structure = function("gst_custom_meta_get_structure", POINTER, POINTER)
get_value = function("gst_structure_get_value", POINTER, POINTER, ctypes.c_char_p)
set_value = function("gst_structure_set_value", None, POINTER, ctypes.c_char_p, POINTER)


def attach(buffer, tensor_id, element_type, shape, data, model=None):
    """Attaches a tensor to `buffer`, which must be writable.

    `data` holds the elements, f32 or f16, contiguous and row-major: for a NumPy array, what tobytes()
    returns. `model` are caps with what is known of the model; make them once. The plugin must have been
    loaded, since it registers the metadata.
    """
    size = {"f32": 4, "f16": 2}[element_type] * math.prod(shape)
    if len(data) != size:
        raise ValueError(f"{tensor_id}: expected {size} bytes for {shape}, got {len(data)}")
    # Python has no unsigned 64-bit integer, but the text form of a structure has.
    sides = ",".join(str(side) for side in shape)
    fields = Gst.Structure.new_from_string(f"fields, dims=(guint64)<{sides}>")
    fields.set_value("id", tensor_id)
    fields.set_value("type", element_type)
    fields.set_value("data", Gst.Buffer.new_wrapped(data) if data else Gst.Buffer.new())
    if model is not None:
        fields.set_value("model", model)

    meta = buffer.add_custom_meta("NmsFilterTensor")
    if meta is None:
        raise RuntimeError("NmsFilterTensor is not registered: make an nmsfilter element first")
    structure = meta_structure(hash(meta))
    for name in (b"id", b"type", b"dims", b"data", b"model"):
        if value := get_value(hash(fields), name):
            set_value(structure, name, value)


def regions(buffer):
    """The regions that nmsfilter attached, best first: label, left, top, width, height, confidence."""
    found = []
    while region := GstVideo.buffer_get_video_region_of_interest_meta_id(buffer, len(found)):
        known, confidence = region.get_param("detection").get_double("confidence")
        assert known
        label = GLib.quark_to_string(region.roi_type)
        found.append((label, region.x, region.y, region.w, region.h, confidence))
    return found


def main():
    pipeline = Gst.parse_launch(
        "appsrc name=in format=time caps=video/x-raw,format=RGB,width=640,height=480,framerate=30/1"
        " ! nmsfilter ! appsink name=out sync=false"
    )
    pipeline.set_state(Gst.State.PLAYING)

    # Anchors of left, top, side, score: two windows of one person, and one of another person.
    windows = array.array("f", [100, 50, 80, 0.9, 104, 52, 80, 0.8, 300, 60, 90, 0.7])
    frame = Gst.Buffer.new_wrapped(bytes(640 * 480 * 3))
    frame.pts = 0
    # What nmsfilter would otherwise need properties for: here the label of the only class.
    model = Gst.Caps.from_string("application/x-nmsfilter-model, labels=(string)<person>")
    attach(frame, "windows", "f32", (3, 4), windows.tobytes(), model)
    pipeline.get_by_name("in").push_buffer(frame)
    pipeline.get_by_name("in").end_of_stream()

    sample = pipeline.get_by_name("out").try_pull_sample(10 * Gst.SECOND)
    if sample is None:
        message = pipeline.get_bus().pop_filtered(Gst.MessageType.ERROR)
        raise SystemExit(message.parse_error().gerror.message if message else "no frame came out")
    for label, x, y, width, height, confidence in regions(sample.get_buffer()):
        print(f"{label} at {x},{y} {width}x{height}, confidence {confidence:.2f}")
    pipeline.set_state(Gst.State.NULL)


if __name__ == "__main__":
    main()
