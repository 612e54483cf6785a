#!/usr/bin/env python3
# SPDX-License-Identifier: MIT OR Apache-2.0
"""Detects objects in many video files, or decodes many recorded tensors (.npy), on the machines of a Ray cluster.

Each input gives one Parquet file.
"""

import argparse
import os
import sys
import time

import ray
import ray.data

import clip


class Detector:
    """Processes clips. Ray runs one in a separate process on each core, or on each share of a GPU."""

    def __init__(self, settings):
        self.settings = settings

    def __call__(self, batch):
        (path,) = batch["item"]
        return {key: [value] for key, value in outcome(path, self.settings).items()}


def outcome(path, settings):
    """Processes a clip. Returns the report on it."""
    row = {"path": path, "frames": 0, "detections": 0, "warnings": "", "error": ""}
    try:
        row["frames"], row["detections"], warnings = clip.process(path, settings)
        row["warnings"] = "; ".join(sorted(set(warnings)))
    except (clip.ClipError, OSError, ValueError) as error:
        row["error"] = str(error) or type(error).__name__
    return row


def clips(inputs):
    """Returns all files without repetitions: named files, files in folders, and files in a list (`@FILE`)."""
    found = []
    for each in inputs:
        if each.startswith("@"):
            with open(each[1:], encoding="utf-8", errors="surrogateescape") as lines:
                found += [line.rstrip("\n") for line in lines if line.strip()]
        elif os.path.isdir(each):
            found += [entry.path for entry in os.scandir(each) if entry.is_file() and not entry.name.startswith(".")]
        else:
            found.append(each)
    return sorted({os.path.abspath(path) for path in found})


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("inputs", nargs="+", metavar="CLIP", help="a video or .npy file, a folder, or @FILE with a list")
    parser.add_argument("--elements", help="of videos, for example: ortinference model=/models/yolov8n.onnx ! nmsfilter")
    parser.add_argument("--decoder", help="of recorded tensors, for example: yolov8")
    parser.add_argument("--output", required=True, help="the folder of the results; all machines must have it")
    parser.add_argument("--workers", type=int, default=1, help="processes, over all machines (1)")
    parser.add_argument("--cpus", type=float, default=1, help="cores of a process (1)")
    parser.add_argument("--gpus", type=float, default=0, help="GPUs of a process, such as 0.25 (0)")
    parser.add_argument("--timeout", type=float, default=60, help="seconds without a frame after which a clip has failed (60)")
    parser.add_argument("--address", help="of the Ray cluster (unset: this machine alone)")
    arguments = parser.parse_args()

    output = os.path.abspath(arguments.output)
    os.makedirs(output, exist_ok=True)
    # Remove what killed workers left behind. A folder can be used by only one job at a time.
    for entry in os.scandir(output):
        if entry.name.startswith(".") and entry.name.endswith(".tmp"):
            os.unlink(entry.path)
    all_clips = clips(arguments.inputs)
    settings = clip.Settings(output, arguments.elements, arguments.decoder, arguments.timeout)
    if not arguments.decoder and any(clip.is_recorded(path) for path in all_clips):
        parser.error("recorded tensors (.npy) need --decoder")
    if not arguments.elements and not all(clip.is_recorded(path) for path in all_clips):
        parser.error("videos need --elements")
    to_do = [path for path in all_clips if not clip.is_done(path, settings)]
    print(f"{len(all_clips)} clips, of which {len(all_clips) - len(to_do)} were done before", flush=True)
    if not to_do:
        return 0

    # Workers import the modules of this folder.
    folders = [os.path.dirname(os.path.abspath(__file__)), *filter(None, [os.environ.get("PYTHONPATH")])]
    variables = {"PYTHONPATH": os.pathsep.join(folders)}
    ray.init(address=arguments.address, log_to_driver=False, runtime_env={"env_vars": variables})
    context = ray.data.DataContext.get_current()
    context.enable_progress_bars = False
    # If a worker is killed, the clips that it had do not end the job.
    context.max_errored_blocks = -1
    # If something is missing on a worker, the job fails as a whole, instead of every clip.
    ray.get(
        ray.remote(clip.check).options(num_cpus=arguments.cpus, num_gpus=arguments.gpus).remote(to_do, settings)
    )
    job = Job(arguments, settings, len(to_do))
    left = to_do
    # The clips of a killed worker are given to another worker. A clip that ends every process is
    # given up.
    for _ in range(3):
        left = job.run(left)
        if not left:
            break
    job.failed |= {path: "its worker ended without a result" for path in left}
    seconds = time.monotonic() - job.began
    print(f"{len(to_do) - len(job.failed)} clips in {seconds:.1f} s: {job.frames / seconds:.1f} frames per second")
    for path, error in job.failed.items():
        print(f"FAILED: {path}: {error}")
    return 1 if job.failed else 0


class Job:
    """The state of all clips: the finished ones, and the errors of the failed ones."""

    def __init__(self, arguments, settings, total):
        self.arguments, self.settings, self.total = arguments, settings, total
        self.finished, self.failed, self.frames = set(), {}, 0
        self.began = time.monotonic()

    def run(self, paths):
        """Processes clips on the cluster. Returns the clips without an outcome, whose worker was killed."""
        arguments = self.arguments
        results = ray.data.from_items(paths, override_num_blocks=len(paths)).map_batches(
            Detector,
            fn_constructor_args=(self.settings,),
            batch_size=1,
            compute=ray.data.ActorPoolStrategy(
                min_size=1, max_size=arguments.workers, max_tasks_in_flight_per_actor=2
            ),
            num_cpus=arguments.cpus,
            num_gpus=arguments.gpus,
            # A process that ended is restarted. Its clips are left for the next run.
            ray_remote_args_fn=lambda: {"max_restarts": -1, "max_task_retries": 0},
        )
        for row in results.iter_rows():
            self.report(row)
        left = [path for path in paths if path not in self.finished and path not in self.failed]
        for path in left:
            # The worker was killed between writing the result and reporting it.
            if clip.is_done(path, self.settings):
                self.report(outcome(path, self.settings))
        return [path for path in left if path not in self.finished]

    def report(self, row):
        path, error = row["path"], row["error"]
        if path in self.finished or path in self.failed:
            return
        if error:
            self.failed[path] = error
            text = f"FAILED: {error}"
        else:
            self.finished.add(path)
            self.frames += row["frames"]
            text = f"{row['frames']} frames, {row['detections']} detections"
        if row["warnings"]:
            text += f"; WARNING: {row['warnings']}"
        done, seconds = len(self.finished) + len(self.failed), time.monotonic() - self.began
        print(f"[{done}/{self.total}, {seconds:.1f} s] {path}: {text}", flush=True)


if __name__ == "__main__":
    sys.exit(main())
