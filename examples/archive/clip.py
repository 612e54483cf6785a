# SPDX-License-Identifier: MIT OR Apache-2.0
"""Converts one clip, a video file or recorded tensors, to a Parquet file with the detections in its frames."""

import hashlib
import json
import os
import time
import uuid
from typing import NamedTuple

import pyarrow
import pyarrow.parquet

OBJECT = pyarrow.struct(
    [
        # In videos, numbers are pixels of the frame. A box with a rotation (radians, clockwise) is
        # given as it is before it is rotated about its center. In recorded tensors, numbers are as
        # the model writes them.
        ("x", pyarrow.float32()),
        ("y", pyarrow.float32()),
        ("w", pyarrow.float32()),
        ("h", pyarrow.float32()),
        ("rotation", pyarrow.float32()),
        ("label_id", pyarrow.int32()),
        ("label", pyarrow.string()),
        ("confidence", pyarrow.float64()),
        ("track", pyarrow.int64()),
        # The format of these columns is detectionjson's.
        ("keypoints_json", pyarrow.string()),
        ("mask_json", pyarrow.string()),
    ]
)
FRAME = pyarrow.schema(
    [
        ("frame", pyarrow.int64()),
        ("timestamp_ns", pyarrow.int64()),
        ("width", pyarrow.int32()),
        ("height", pyarrow.int32()),
        # Null if unknown: recorded tensors, or an inference element that does not mark frames.
        ("inferred", pyarrow.bool_()),
        ("objects", pyarrow.list_(OBJECT)),
    ]
)


# Number of frames of recorded tensors that are decoded at once.
BATCH = 64


class Settings(NamedTuple):
    """Settings that apply to all clips."""

    # Folder for the results.
    output: str
    # Elements of the pipeline that decodes a video.
    elements: str | None
    # Decoder for recorded tensors (.npy).
    decoder: str | None
    # Seconds without a frame after which a clip fails.
    timeout: float


class ClipError(Exception):
    """The clip has no result. Other clips are not affected."""


def is_recorded(path):
    """Returns true if a file has recorded tensors, as an array whose first dimension is the number of frames."""
    return path.endswith(".npy")


def identity(path, settings):
    """Returns everything on which a result depends. If it changes, the result is computed again."""
    status = os.stat(path)
    how = f"decoder={settings.decoder}" if is_recorded(path) else settings.elements
    return {
        "path": os.path.abspath(path),
        "size": str(status.st_size),
        "modified": str(status.st_mtime_ns),
        "how": how or "",
    }


def encoded(texts):
    """Encodes metadata as bytes, as Parquet requires."""
    return {key.encode(): value.encode("utf-8", "surrogateescape") for key, value in texts.items()}


def result_path(output, path):
    """Returns the path of a clip's result. Clips with equal names in different folders have different results."""
    path = os.path.abspath(path)
    digest = hashlib.sha256(os.fsencode(path)).hexdigest()[:12]
    return os.path.join(output, f"{os.path.basename(path)}-{digest}.parquet")


def is_done(path, settings):
    """Returns true if there is a complete result for the clip in its present state, with these settings."""
    try:
        found = pyarrow.parquet.read_schema(result_path(settings.output, path)).metadata or {}
        wanted = encoded(identity(path, settings))
    except (OSError, pyarrow.ArrowInvalid):
        return False
    return wanted.items() <= found.items()


def row(frame, line):
    """Returns the row for a frame, from one line of detectionjson."""
    found = json.loads(line)
    resolution = found["resolution"]
    return {
        "frame": frame,
        "timestamp_ns": found.get("timestamp"),
        "width": resolution["width"],
        "height": resolution["height"],
        "inferred": found.get("inferred"),
        "objects": [detected(each) for each in found["objects"]],
    }


def detected(found):
    detection = found.get("detection", {})
    text = {name: json.dumps(found[name]) for name in ("keypoints", "mask") if name in found}
    return {
        **{name: found[name] for name in ("x", "y", "w", "h")},
        "rotation": found.get("rotation"),
        "label_id": detection.get("label_id"),
        "label": detection.get("label", found.get("roi_type")),
        "confidence": detection.get("confidence"),
        "track": found.get("id"),
        "keypoints_json": text.get("keypoints"),
        "mask_json": text.get("mask"),
    }


def gstreamer():
    """Returns the initialized modules Gst and GLib."""
    import gi

    gi.require_version("Gst", "1.0")
    gi.require_version("GstApp", "1.0")
    from gi.repository import GLib, Gst, GstApp  # noqa: F401 (GstApp: appsink's methods)

    Gst.init(None)
    return Gst, GLib


def pipeline_of(elements):
    """Makes the pipeline for a clip. Raises RuntimeError if this machine cannot make it."""
    Gst, GLib = gstreamer()
    try:
        return Gst.parse_launch(
            f"uridecodebin name=clip ! videoconvert ! {elements} ! detectionjson add-empty-results=true"
            " ! appsink name=lines sync=false max-buffers=64"
        )
    except GLib.Error as error:
        raise RuntimeError(f"the elements make no pipeline: {error.message}") from error


def check(paths, settings):
    """Raises an error if this machine cannot process these clips."""
    if any(is_recorded(path) for path in paths):
        import nmsfilter

        nmsfilter.decode  # noqa: B018 (an older version does not have it)
    if not all(is_recorded(path) for path in paths):
        pipeline_of(settings.elements)


def decode(path, decoder):
    """Returns the rows for frames of recorded tensors. Raises ValueError if the decoder cannot read them."""
    import nmsfilter
    import numpy

    tensors = numpy.load(path, mmap_mode="r", allow_pickle=False)
    rows = []
    for first in range(0, len(tensors), BATCH):
        found = nmsfilter.decode(numpy.ascontiguousarray(tensors[first : first + BATCH]), decoder)
        for image, count in enumerate(found.counts):
            kept = zip(found.boxes[image][:count], found.scores[image][:count], found.classes[image][:count])
            objects = [
                dict(x=x1, y=y1, w=x2 - x1, h=y2 - y1, label_id=int(label), confidence=float(score))
                for (x1, y1, x2, y2), score, label in kept
            ]
            rows.append({"frame": first + image, "objects": objects})
    return rows


def detect(path, elements, timeout):
    """Returns the rows for the clip's frames, and the warnings of the elements.

    Raises ClipError if an element reports an error, if there are no frames, or if no frame comes for `timeout` seconds.
    """
    Gst, _ = gstreamer()
    pipeline = pipeline_of(elements)
    pipeline.get_by_name("clip").set_property("uri", Gst.filename_to_uri(path))
    lines, bus = pipeline.get_by_name("lines"), pipeline.get_bus()
    rows, warnings, duration = [], [], None
    pipeline.set_state(Gst.State.PLAYING)
    try:
        latest = time.monotonic()
        while True:
            sample = lines.try_pull_sample(Gst.SECOND // 10)
            while message := bus.pop_filtered(Gst.MessageType.ERROR | Gst.MessageType.WARNING):
                if message.type == Gst.MessageType.ERROR:
                    raise ClipError(f"{message.src.get_name()}: {message.parse_error().gerror.message}")
                warnings.append(f"{message.src.get_name()}: {message.parse_warning().gerror.message}")
            if sample:
                buffer = sample.get_buffer()
                if not rows:
                    known, duration = pipeline.query_duration(Gst.Format.TIME)
                    duration = duration if known else None
                rows.append(row(len(rows), buffer.extract_dup(0, buffer.get_size())))
                latest = time.monotonic()
            elif lines.is_eos():
                break
            elif time.monotonic() - latest > timeout:
                raise ClipError(f"no frame for {timeout} seconds, after {len(rows)} frames")
    finally:
        pipeline.set_state(Gst.State.NULL)
    if not rows:
        raise ClipError("it has no frame")
    end = rows[-1]["timestamp_ns"]
    if duration and end is not None and duration - end > Gst.SECOND:
        # Some formats end without an error when a file is truncated.
        warnings.append(f"its last frame is at {end / Gst.SECOND:.1f} of {duration / Gst.SECOND:.1f} seconds")
    return rows, warnings


def process(path, settings):
    """Writes the result of a clip, unless it exists. Returns its numbers of frames and detections, and warnings.

    A file gets its final name when it is complete. No matter how often a clip is processed, and by which worker, it
    has a single result.
    """
    final = result_path(settings.output, path)
    if is_done(path, settings):
        found = pyarrow.parquet.read_schema(final).metadata
        return int(found[b"frames"]), int(found[b"detections"]), json.loads(found[b"warnings"])
    # The identity is computed before the frames are read: a clip that changes in the meantime is
    # not done.
    depends_on = identity(path, settings)
    if is_recorded(path):
        rows, warnings = decode(path, settings.decoder), []
    else:
        rows, warnings = detect(path, settings.elements, settings.timeout)
    detections = sum(len(row["objects"]) for row in rows)
    counts = {"frames": str(len(rows)), "detections": str(detections), "warnings": json.dumps(warnings)}
    table = pyarrow.Table.from_pylist(rows, schema=FRAME.with_metadata(encoded(depends_on | counts)))
    temporary = os.path.join(settings.output, f".{uuid.uuid4()}.tmp")
    try:
        with open(temporary, "xb") as file:
            pyarrow.parquet.write_table(table, file)
            file.flush()
            os.fsync(file.fileno())
        os.replace(temporary, final)
    finally:
        # The temporary file still exists only after an error.
        if os.path.exists(temporary):
            os.unlink(temporary)
    return len(rows), detections, warnings
