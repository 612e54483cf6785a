#!/usr/bin/python3
# SPDX-License-Identifier: MIT OR Apache-2.0
"""live_delay.py [--seconds N] [--source ELEMENTS] [--sink ELEMENT] ELEMENTS: measures the delay of a live pipeline.

Runs SOURCE ! ELEMENTS ! SINK for N seconds. The delay of a frame is the time from its timestamp, which a live source sets
when the frame is captured, to its arrival at the sink. Needs PyGObject (Debian: python3-gi) and the plugins
(GST_PLUGIN_PATH).
"""

import argparse
import statistics

import gi

gi.require_version("Gst", "1.0")
from gi.repository import Gst  # noqa: E402

SOURCE = "videotestsrc is-live=true ! video/x-raw,format=I420,width=1280,height=720,framerate=50/1"


def is_inferred(buffer):
    """Returns whether a model ran on the frame. A frame without a mark counts as inferred."""
    mark = buffer.get_custom_meta("NmsFilterInference")
    return mark is None or mark.get_structure().get_boolean("inferred")[1]


def main():
    parser = argparse.ArgumentParser(description=__doc__.partition(":")[2])
    parser.add_argument("--seconds", type=int, default=60)
    parser.add_argument("--source", default=SOURCE)
    parser.add_argument("--sink", default="fakesink")
    parser.add_argument("elements")
    arguments = parser.parse_args()

    Gst.init(None)
    pipeline = Gst.parse_launch(f"{arguments.source} ! {arguments.elements} ! {arguments.sink} name=sink")
    inferred, others = [], []

    def arrived(pad, info):
        buffer = info.get_buffer()
        segment = pad.get_sticky_event(Gst.EventType.SEGMENT, 0).parse_segment()
        captured = segment.to_running_time(Gst.Format.TIME, buffer.pts)
        delay = (pipeline.get_clock().get_time() - pipeline.get_base_time() - captured) / Gst.SECOND
        (inferred if is_inferred(buffer) else others).append(delay)
        return Gst.PadProbeReturn.OK

    pipeline.get_by_name("sink").get_static_pad("sink").add_probe(Gst.PadProbeType.BUFFER, arrived)
    pipeline.set_state(Gst.State.PLAYING)
    end = pipeline.get_bus().timed_pop_filtered(arguments.seconds * Gst.SECOND, Gst.MessageType.ERROR)
    if end:
        raise SystemExit(f"{end.src.get_name()}: {end.parse_error().gerror.message}")
    pipeline.set_state(Gst.State.NULL)
    for name, delays in (("inferred", inferred), ("not inferred", others)):
        print(f"{len(delays)} frames {name}", end="")
        if delays:
            print(f", delay: median {statistics.median(delays):.3f} s, longest {max(delays):.3f} s", end="")
        print()


if __name__ == "__main__":
    main()
