#!/usr/bin/env python3
# SPDX-License-Identifier: MIT OR Apache-2.0
"""Writes the measured parts of docs/developers/measurements.md and README.md.

    measurements.py [--gpu FOLDER] [--cpu FOLDER]    the parts that these results have
    measurements.py --check                          that every table is a measured part

FOLDER has what `tests/gpu/run.sh FOLDER all` or benches/measurements.sh wrote. A measured part stands between the lines
`<!--measured:NAME-->` and `<!--end-->`, and is the result of the function `NAME` below. A part whose files are
missing stays, and is named.
"""

import argparse
import csv
import pathlib
import re
import sys

PROJECT = pathlib.Path(__file__).resolve().parent.parent
PAGES = [PROJECT / "docs/developers/measurements.md", PROJECT / "README.md"]
PART = re.compile(r"(<!--measured:(\S+)-->\n)(.*?)(<!--end-->)", re.DOTALL)


class Results:
    """The files of a folder. `choose` returns the rows with these values."""

    def __init__(self, folder):
        self.folder = folder

    def text(self, name):
        return (self.folder / name).read_text().strip()

    def choose(self, name, **wanted):
        with open(self.folder / f"{name}.csv", newline="") as file:
            rows = list(csv.DictReader(file))
        return [row for row in rows if all(row[key] == str(value) for key, value in wanted.items())]

    def one(self, name, **wanted):
        rows = self.choose(name, **wanted)
        if len(rows) != 1:
            raise LookupError(f"{name}.csv: expected one row with {wanted}, found {len(rows)}")
        return rows[0]

    def has(self, name):
        return (self.folder / f"{name}.csv").exists()


def count(value):
    return f"{int(value):,}"


def number(value):
    """One decimal below 100; empty without a value, and for times that are not measured."""
    if value in ("", None) or float(value) == 0:
        return ""
    value = float(value)
    return f"{value:.1f}" if value < 100 else f"{value:,.0f}"


def ratio(theirs, ours):
    value = float(theirs) / float(ours)
    return f"{value:.1f}" if value < 10 else f"{value:.0f}"


def table(heading, rows):
    line = lambda cells: f"| {' | '.join(cells)} |".replace("|  |", "| |").replace("|  |", "| |")
    return "\n".join([line(heading), "|" + "---|" * len(heading), *map(line, rows)])


def columns(title, heads, rows):
    """A table whose rows have a name and one cell for each of `heads`."""
    return table([title, *heads], [[name, *cells] for name, cells in rows.items()])


LISTS = {
    "oscars 360": "the paper's windows", "oscars 698": "", "oscars 2997": "", "ultraface640_selfie": "UltraFace, a crowd",
    "uniform 8400": "random", "uniform 30000": "",
}


def peer(results, name, program, ours):
    """A program's time divided by one of ours, or nothing if it was not measured."""
    rows = results.choose("peers", list=name, program=program) if results.has("peers") else []
    return ratio(rows[0]["median us"], ours) if rows else ""


def suppression(gpu):
    rows = []
    for name, title in LISTS.items():
        cpu, cuda = (gpu.one("candidates", list=name, engine=engine) for engine in ("cpu", "cuda"))
        times = (cpu["median us"], cuda["median us"], cuda["kernels us"])
        torchvision = peer(gpu, name, "torchvision, GPU", cuda["median us"])
        rows.append([title, count(cpu["n"]), count(cpu["survivors"]), *map(number, times), torchvision])
    return table(["boxes", "n", "survivors", "cpu", "cuda", "kernels", "torchvision on the GPU / cuda"], rows)


def growth(gpu):
    sizes = [1000, 30_000, 100_000, 1_000_000]
    rows = {}
    for scene, title in (("clustered", "ten around each object"), ("uniform", "random")):
        for engine in ("cpu", "cuda"):
            found = [gpu.one("growth", scene=scene, n=n, engine=engine) for n in sizes]
            rows[f"{title}: {engine}"] = [number(row["median us"]) for row in found]
    return columns("boxes", map(count, sizes), rows)


def element(gpu):
    rows = []
    for cpu in gpu.choose("element", engine="cpu")[2:]:
        counts = {key: cpu[key] for key in ("candidates", "survivors")}
        cuda = [gpu.one("element", engine="cuda", **counts, **{"tensor memory": memory}) for memory in ("device", "host")]
        rows.append([*map(count, counts.values()), *(number(row["median us"]) for row in (cpu, *cuda))])
    return table(["candidates", "survivors", "cpu", "cuda, device tensor", "cuda, host tensor"], rows)


def start(gpu):
    rows = [[row["element"], row["difference ms"]] for row in gpu.choose("start")[1:]]
    return table(["backend", "milliseconds"], rows)


def oriented(gpu):
    cpu = gpu.choose("oriented", rule="polygons", program="cpu")
    others = {name: [gpu.one("oriented", rule="polygons", program=name, n=row["n"])["median us"] for row in cpu]
              for name in ("cuda", "mmcv's algorithm")}
    return columns("n", [count(row["n"]) for row in cpu], {
        "cpu": [number(row["median us"]) for row in cpu],
        "cuda": [number(us) for us in others["cuda"]],
        "mmcv's algorithm / cpu": [ratio(us, row["median us"]) for us, row in zip(others["mmcv's algorithm"], cpu)],
    })


OBJECTS = ("small", "medium", "large")


def masks(gpu):
    def cells(engine, kind, column):
        return [number(gpu.one("masks", objects=objects, masks=kind, engine=engine)[column]) for objects in OBJECTS]

    rows = {}
    for kind, title in (("prototypes", "prototypes' size"), ("frame", "frame's size")):
        rows[f"cpu, {title}"] = cells("cpu", kind, "median us")
        rows[f"kernels, {title}"] = cells("cuda", kind, "kernels us")
    return columns("objects", OBJECTS, rows)


def merging(gpu):
    def cell(method, n, engine):
        found = gpu.choose("merging", centers="crowded", n=n, method=method, engine=engine)
        return number(found[0]["median us"]) if found else ""

    methods = ("greedy", "merge", "merge-transitive", "matrix-linear", "weighted-fusion", "soft-linear")
    rows = {f"`{method}`": [cell(method, n, engine) for n in (1312, 33337) for engine in ("cpu", "cuda")]
            for method in methods}
    return columns("method", ["1,312: cpu", "cuda", "33,337: cpu", "cuda"], rows)


def streams(gpu):
    rows = []
    for ours in gpu.choose("streams", work="element"):
        floor = gpu.choose("streams", work="floor", pace=ours["pace"], streams=ours["streams"])
        times = [number(row[column]) for row in (ours, *floor) for column in ("p50 us", "slowest p99 us")]
        rows.append([ours["pace"], ours["streams"], *times, *[""] * (4 - len(times))])
    return table(["each", "elements", "p50", "slowest p99", "floor: p50", "slowest p99"], rows)


def kernels(gpu):
    sizes = [200, 698, 1027, 2895]
    ours = [gpu.one("kernels", workload="windows, IoU 0.3", n=n) for n in sizes]
    both = [number(float(row["map us"]) + float(row["reduce us"])) for row in ours]
    rows = [["map + reduce", *both], ["with decode and publication", *(number(row["all us"]) for row in ours)]]
    slots = {n: [row for row in gpu.choose("kernels-paper", n=n)] for n in sizes}
    for at, title in ((0, "paper, 4096: memset, map, reduce"), (1, "paper, fitted: memset, map, reduce")):
        rows.append([title, *(number(slots[n][at]["all us"]) for n in sizes)])
    return table(["n", *map(count, sizes)], rows)


def in_python(gpu):
    cell = lambda row: f"{number(row['nmsfilter us'])} ({number(row['PyTorch us'])})"
    works = ["nms, GPU", "batched_nms, GPU", "nms, CPU", "batched_nms, CPU"]
    sizes = list(dict.fromkeys(row["n"] for row in gpu.choose("python", work=works[0])))
    rows = [[count(n), *(cell(row[0]) if (row := gpu.choose("python", work=work, n=n)) else "" for work in works)]
            for n in sizes]
    return table(["boxes", *(f"`{name}`, {device}" for name, device in (work.split(", ") for work in works))], rows)


def decoders(gpu):
    found = [row for work in ("decode", "COCO") for row in gpu.choose("python", work=work)]
    names = {"decode": "batch of", "COCO": "COCO:"}
    return columns("", [f"{names[row['work']]} {count(row['n'])}" for row in found], {
        "`Decoder`": [number(row["nmsfilter us"]) for row in found],
        "PyTorch / `Decoder`": [ratio(row["PyTorch us"], row["nmsfilter us"]) for row in found],
    })


def deepstream(gpu):
    rows = [[row["frames"], number(row["GPU us"]), f"{number(row['mean us'])} ({number(row['p99 us'])})",
             count(row["bytes up"]), count(row["bytes down"]), f"{float(row['cores at 50/s']):.3f}"]
            for row in gpu.choose("deepstream", tensors="in a row") if row["frames"] != "16"]
    heading = ["frames", "launch by the GPU's clock", "buffer (p99)", "bytes to the GPU", "from it",
               "cores at 50 buffers a second"]
    return table(heading, rows)


def milliseconds(row):
    return ", ".join(f"{float(row[column]) / 1000:.1f}" for column in ("p50 us", "p99 us"))


def chain(gpu):
    def rate(name):
        rows = gpu.choose("chain", chain=name)
        if not rows:
            return ""
        share = rows[0]["of the model"]
        return rows[0]["pictures/s"] + (f" ({share})" if share else "")

    rows = []
    for streams in ("1", "4", "16"):
        best = gpu.one("chain", chain=f"{streams} streams" + ("" if streams == "1" else ", batches"))
        names = [f"model, batch {streams}, graph", f"{streams} streams, no graph", f"{streams} streams", f"{streams} streams, batches"]
        rows.append([streams, *map(rate, names), milliseconds(best), best["cores"]])
    heading = ["streams", "the model alone", "no graph", "graph", "one model, batches", "latency p50, p99, ms", "cores"]
    return table(heading, rows)


def tiles(gpu):
    rows = [[row["streams"], row["frames/s"], f"{row['tiles/s']} ({row['of the model']})", milliseconds(row), row["cores"]]
            for row in gpu.choose("tiles")]
    return table(["streams", "frames/s", "regions/s", "p50, p99, ms", "cores"], rows)


def two_cores_peers(cpu):
    rows = []
    for name, title in LISTS.items():
        ours = cpu.one("candidates", list=name, engine="cpu")
        programs = ("OpenCV NMSBoxes", "torchvision, CPU", "nvinfer")
        others = [peer(cpu, name, program, ours["median us"]) for program in programs]
        rows.append([title, count(ours["n"]), number(ours["median us"]), *others])
    return table(["boxes", "n", "cpu", "OpenCV", "torchvision", "nvinfer"], rows)


def readme(gpu):
    ours = [gpu.one("candidates", list="oscars 698", engine=engine)["median us"] for engine in ("cpu", "cuda")]
    theirs = [peer(gpu, "oscars 698", f"torchvision, {device}", us) for device, us in zip(("CPU", "GPU"), ours)]
    rows = [["decode and suppress 698 boxes", *map(number, ours)],
            ["torchvision, suppression alone", *(f"{times} times as long" if times else "" for times in theirs)]]
    return table([f"microseconds, commit {gpu.text('commit')}", "one core of a Xeon", "NVIDIA H200"], rows)


def machine(results, title):
    facts = {row["machine"]: row[""] for row in results.choose("machine")}
    gpu = [] if facts["GPU"].startswith("none") else [facts["GPU"]]
    text = "; ".join([*gpu, facts["processor"], facts["system"], facts["GStreamer"]])
    return table([title, text], [["commit", f"{results.text('commit')}, {results.text('date')}"]])


def gpu_machine(gpu):
    return machine(gpu, "*GPU machine*")


def cpu_machine(cpu):
    return machine(cpu, "*two cores*")


OF_GPU = [gpu_machine, suppression, growth, element, start, oriented, masks, merging, streams, kernels,
          in_python, decoders, deepstream, chain, tiles, readme]
OF_CPU = [cpu_machine, two_cores_peers]
WRITERS = {writer.__name__: writer for writer in OF_GPU + OF_CPU}


def check():
    found, errors = [], []
    for page in PAGES:
        text = page.read_text()
        found += [name for _, name, _, _ in PART.findall(text)]
        rest = PART.sub("", text)
        if page == PAGES[0]:
            errors += [f"{page}: a table that is not measured: {line}" for line in rest.splitlines() if line.startswith("|")]
    errors += [f"{name}: expected one part, found {found.count(name)}" for name in WRITERS if found.count(name) != 1]
    errors += [f"no function writes the part {name}" for name in found if name not in WRITERS]
    return errors


def write(results):
    """Replaces parts. `results` has the folder of each writer that is to write."""
    kept = []

    def part(found):
        begin, name, old, end = found.groups()
        if name not in results:
            return found[0]
        try:
            return f"{begin}{WRITERS[name](results[name])}\n{end}"
        except (FileNotFoundError, LookupError) as error:
            kept.append(f"{name} stays: {error!r}")
            return found[0]

    for page in PAGES:
        page.write_text(PART.sub(part, page.read_text()))
    return kept


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("--gpu", type=pathlib.Path)
    parser.add_argument("--cpu", type=pathlib.Path)
    parser.add_argument("--check", action="store_true")
    options = parser.parse_args()
    results = {}
    for folder, writers in ((options.gpu, OF_GPU), (options.cpu, OF_CPU)):
        if folder:
            results.update({writer.__name__: Results(folder) for writer in writers})
    errors = check() or (write(results) if results else [])
    print(*errors, sep="\n", end="\n" if errors else "")
    sys.exit(bool(errors))
