# SPDX-License-Identifier: MIT OR Apache-2.0
"""clips.py VIDEO FOLDER COUNT FRAMES: writes short clips from different parts of a video, as AVI files of JPEG frames."""

import os
import sys

import gi

gi.require_version("Gst", "1.0")
gi.require_version("GstApp", "1.0")
from gi.repository import Gst, GstApp  # noqa: E402, F401

Gst.init(None)


CAPS = Gst.Caps.from_string("image/jpeg,width=640,height=360,framerate=25/1")


def pictures(video):
    pipeline = Gst.parse_launch(
        f'filesrc location="{video}" ! decodebin ! videoconvert ! videoscale ! video/x-raw,width=640,height=360'
        " ! jpegenc ! appsink name=out sync=false"
    )
    pipeline.set_state(Gst.State.PLAYING)
    found = []
    while sample := pipeline.get_by_name("out").try_pull_sample(10 * Gst.SECOND):
        buffer = sample.get_buffer()
        found.append(buffer.extract_dup(0, buffer.get_size()))
    pipeline.set_state(Gst.State.NULL)
    return found


def write(path, frames):
    pipeline = Gst.parse_launch(
        "appsrc name=in format=time ! jpegdec ! jpegenc ! avimux ! filesink name=out"
    )
    pipeline.get_by_name("out").set_property("location", path)
    pipeline.get_by_name("in").set_property("caps", CAPS)
    pipeline.set_state(Gst.State.PLAYING)
    for number, frame in enumerate(frames):
        buffer = Gst.Buffer.new_wrapped(frame)
        buffer.pts = buffer.dts = number * Gst.SECOND // 25
        buffer.duration = Gst.SECOND // 25
        pipeline.get_by_name("in").push_buffer(buffer)
    pipeline.get_by_name("in").end_of_stream()
    message = pipeline.get_bus().timed_pop_filtered(10 * Gst.SECOND, Gst.MessageType.EOS | Gst.MessageType.ERROR)
    assert message and message.type == Gst.MessageType.EOS, path
    pipeline.set_state(Gst.State.NULL)


def main():
    video, folder, count, frames = sys.argv[1], sys.argv[2], int(sys.argv[3]), int(sys.argv[4])
    os.makedirs(folder, exist_ok=True)
    found = pictures(video)
    assert len(found) > frames, f"{len(found)} frames in {video}"
    for number in range(count):
        # As long as there are enough frames, no two clips begin with one frame.
        first = number * 7 % (len(found) - frames)
        write(os.path.join(folder, f"clip{number:03}.avi"), found[first : first + frames])


main()
