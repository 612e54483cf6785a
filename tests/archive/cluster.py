# SPDX-License-Identifier: MIT OR Apache-2.0
"""cluster.py FOLDER DATA ELEMENTS COUNT: runs examples/archive on a Ray cluster of two workers on this machine.

The inputs are COUNT short clips of a video, recorded tensors of 30 frames, and a file that is not a video. DATA is the
folder of test inputs. One worker is killed after a quarter of the clips. The results must equal the results of a single
process without Ray. No result may be lost or duplicated, and a second job must process only the file that is not a
video. The script needs the Python packages ray[data] and nmsfilter, PyGObject, and the plugins (GST_PLUGIN_PATH).
"""

import os
import re
import shutil
import subprocess
import sys
import time

import numpy
import pyarrow.parquet
from ray.cluster_utils import Cluster

TESTS = os.path.dirname(os.path.abspath(__file__))
EXAMPLE = os.path.join(TESTS, "..", "..", "examples", "archive")
sys.path.insert(0, EXAMPLE)
import clip  # noqa: E402


def results(folder):
    """Returns the tables by file name."""
    names = sorted(os.listdir(folder))
    assert all(name.endswith(".parquet") for name in names), names
    return {name: pyarrow.parquet.read_table(os.path.join(folder, name)) for name in names}


def archive(clips, elements, output, address):
    program = [sys.executable, os.path.join(EXAMPLE, "archive.py"), clips, "--elements", elements, "--decoder", "yolov8"]
    program += ["--output", output, "--workers", "2", "--timeout", "20", "--address", address]
    return subprocess.Popen(program, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)


def finish(job):
    try:
        text, _ = job.communicate(timeout=400)
    except subprocess.TimeoutExpired:
        job.kill()
        text, _ = job.communicate()
        raise AssertionError(f"the job does not end:\n{text}") from None
    return text


def main():
    folder, data, elements, count = sys.argv[1], sys.argv[2], sys.argv[3], int(sys.argv[4])
    shutil.rmtree(folder, ignore_errors=True)
    clips, alone, shared = (os.path.join(folder, name) for name in ("clips", "alone", "shared"))
    os.makedirs(alone)
    video = os.path.join(data, "videos", "towncentre_96f_1080p.mp4")
    subprocess.run([sys.executable, os.path.join(TESTS, "clips.py"), video, clips, str(count), "4"], check=True)

    # A frame of a YOLOv8 model with 3 objects is repeated 30 times.
    tensor = numpy.fromfile(os.path.join(data, "recorded", "yolov8_decoder_input.raw"), dtype=numpy.float32)
    numpy.save(os.path.join(clips, "recorded.npy"), numpy.stack([tensor.reshape(2100, 84)] * 30))

    settings = clip.Settings(output=alone, elements=elements, decoder="yolov8", timeout=20)
    began = time.monotonic()
    frames = detections = 0
    for entry in sorted(os.scandir(clips), key=lambda entry: entry.name):
        found = clip.process(entry.path, settings)
        if clip.is_recorded(entry.path):
            assert found == (30, 90, []), found
            continue
        frames, detections = frames + found[0], detections + found[1]
    seconds = time.monotonic() - began
    assert frames == 4 * count and detections > 0, (frames, detections)
    print(f"one process: {count} clips in {seconds:.1f} s, {frames / seconds:.1f} frames per second, {detections} detections")
    with open(os.path.join(clips, "no-video.avi"), "w") as file:
        file.write("This is text.\n")

    cluster = Cluster(initialize_head=True, head_node_args={"num_cpus": 0})
    try:
        workers = [cluster.add_node(num_cpus=1) for _ in range(2)]
        cluster.wait_for_nodes()
        job = archive(clips, elements, shared, cluster.address)
        while job.poll() is None and len(os.listdir(shared) if os.path.isdir(shared) else []) < count // 4:
            time.sleep(0.05)
        assert job.poll() is None, finish(job)
        cluster.remove_node(workers[1], allow_graceful=False)
        text = finish(job)
        print(text)
        assert job.returncode == 1, "a file is no video"
        assert re.search(r"FAILED: \S*no-video\.avi: typefind: Could not determine type of stream\.\n", text)
        assert len(re.findall(r"^FAILED: ", text, re.MULTILINE)) == 1
        assert len(re.findall(r"^\[\d+/\d+, .*\d+ frames, \d+ detections$", text, re.MULTILINE)) == count + 1
        expected, found = results(alone), results(shared)
        assert expected.keys() == found.keys()
        for name, table in expected.items():
            assert table.schema.metadata == found[name].schema.metadata, name
            assert table.equals(found[name]), name

        before = {entry.name: entry.stat().st_mtime_ns for entry in os.scandir(shared)}
        job = archive(clips, elements, shared, cluster.address)
        text = finish(job)
        assert f"{count + 2} clips, of which {count + 1} were done before" in text, text
        assert before == {entry.name: entry.stat().st_mtime_ns for entry in os.scandir(shared)}
    finally:
        cluster.shutdown()
    print(f"{count + 1} results equal those of one process; one worker was killed")


main()
