# SPDX-License-Identifier: MIT OR Apache-2.0
"""cluster.py FOLDER VIDEO ELEMENTS COUNT: examples/archive on a Ray cluster of two workers on this machine.

One worker is killed after a quarter of the clips. The results are those of one process without Ray: none is lost, none is
double, and a second job has nothing to do but the file that is no video. Needs the Python package ray[data], PyGObject and
the plugins (GST_PLUGIN_PATH).
"""

import os
import re
import shutil
import subprocess
import sys
import time

import pyarrow.parquet
from ray.cluster_utils import Cluster

TESTS = os.path.dirname(os.path.abspath(__file__))
EXAMPLE = os.path.join(TESTS, "..", "..", "examples", "archive")
sys.path.insert(0, EXAMPLE)
import clip  # noqa: E402


def results(folder):
    """The tables by the names of their files."""
    names = sorted(os.listdir(folder))
    assert all(name.endswith(".parquet") for name in names), names
    return {name: pyarrow.parquet.read_table(os.path.join(folder, name)) for name in names}


def archive(clips, elements, output, address):
    program = [sys.executable, os.path.join(EXAMPLE, "archive.py"), clips, "--elements", elements]
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
    folder, video, elements, count = sys.argv[1], sys.argv[2], sys.argv[3], int(sys.argv[4])
    shutil.rmtree(folder, ignore_errors=True)
    clips, alone, shared = (os.path.join(folder, name) for name in ("clips", "alone", "shared"))
    os.makedirs(alone)
    subprocess.run([sys.executable, os.path.join(TESTS, "clips.py"), video, clips, str(count), "4"], check=True)

    settings = clip.Settings(output=alone, elements=elements, decoder=None, timeout=20)
    began = time.monotonic()
    frames = detections = 0
    for entry in sorted(os.scandir(clips), key=lambda entry: entry.name):
        found = clip.process(entry.path, settings)
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
        assert len(re.findall(r"^\[\d+/\d+, .*\d+ frames, \d+ detections$", text, re.MULTILINE)) == count
        expected, found = results(alone), results(shared)
        assert expected.keys() == found.keys()
        for name, table in expected.items():
            assert table.schema.metadata == found[name].schema.metadata, name
            assert table.equals(found[name]), name

        before = {entry.name: entry.stat().st_mtime_ns for entry in os.scandir(shared)}
        job = archive(clips, elements, shared, cluster.address)
        text = finish(job)
        assert f"{count + 1} clips, of which {count} were done before" in text, text
        assert before == {entry.name: entry.stat().st_mtime_ns for entry in os.scandir(shared)}
    finally:
        cluster.shutdown()
    print(f"{count} results equal those of one process; one worker was killed")


main()
