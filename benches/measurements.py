#!/usr/bin/env python3
# SPDX-License-Identifier: MIT OR Apache-2.0
"""Writes the measured parts of docs/measurements.md and README.md.

    measurements.py [--gpu FOLDER] [--cpu FOLDER]    the parts that these results have
    measurements.py --check                          that every table is a measured part

FOLDER has what `tests/gpu/run.sh FOLDER all` or benches/measurements.sh wrote. A measured part stands between the lines
`<!-- measured: NAME -->` and `<!-- end -->`, and is the result of the function `NAME` below. A part whose files are
missing stays, and is named.
"""

import argparse
import csv
import pathlib
import re
import sys

PROJECT = pathlib.Path(__file__).resolve().parent.parent
PAGES = [PROJECT / "docs/measurements.md", PROJECT / "README.md"]
PART = re.compile(r"(<!-- measured: (\S+) -->\n)(.*?)(<!-- end -->)", re.DOTALL)


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
    return "\n".join([line(heading), "|" + " --- |" * len(heading), *map(line, rows)])


LISTS = {
    "oscars 200": "the paper's windows", "oscars 360": "", "oscars 698": "", "oscars 2997": "",
    "ultraface640_selfie": "UltraFace, a crowd", "uniform 8400": "random", "uniform 30000": "",
}


def peer(results, name, program, ours):
    """A program's time divided by one of ours, or nothing if it was not measured."""
    rows = results.choose("peers", list=name, program=program) if results.has("peers") else []
    return ratio(rows[0]["median us"], ours) if rows else ""


def suppression(gpu):
    rows = []
    for name, title in LISTS.items():
        cpu, cuda = (gpu.one("candidates", list=name, engine=engine) for engine in ("cpu", "cuda"))
        times = [row["median us"] for row in (cpu, cuda)]
        others = [peer(gpu, name, f"torchvision, {device}", us) for device, us in zip(("CPU", "GPU"), times)]
        rows.append([title, count(cpu["n"]), count(cpu["survivors"]), *map(number, times), *others])
    heading = ["boxes", "n", "survivors", "cpu", "cuda", "torchvision / cpu", "torchvision on the GPU / cuda"]
    return table(heading, rows)


def growth(gpu):
    sizes = [1000, 8400, 30_000, 100_000, 300_000, 1_000_000]
    rows = []
    for scene, title in (("clustered", "ten around each object"), ("uniform", "random")):
        for engine, column in (("cpu", "median us"), ("cuda", "median us"), ("cuda", "kernels us")):
            name = column.removesuffix(" us").replace("median", engine)
            times = [number(gpu.one("growth", scene=scene, n=n, engine=engine)[column]) for n in sizes]
            rows.append([f"{title}: {name}" if engine == "cpu" else name, *times])
    return table(["boxes", *map(count, sizes)], rows)


def element(gpu):
    rows = []
    for cpu in gpu.choose("element", engine="cpu"):
        counts = {key: cpu[key] for key in ("candidates", "survivors")}
        cuda = [gpu.one("element", engine="cuda", **counts, **{"tensor memory": memory}) for memory in ("device", "host")]
        rows.append([*map(count, counts.values()), *(number(row["median us"]) for row in (cpu, *cuda))])
    return table(["candidates", "survivors", "cpu", "cuda, device tensor", "cuda, host tensor"], rows)


def start(gpu):
    rows = [[row["element"], row["difference ms"]] for row in gpu.choose("start")[1:]]
    return table(["backend", "milliseconds"], rows)


def families(gpu):
    rows = []
    for cpu in gpu.choose("layouts", engine="cpu"):
        cuda = gpu.one("layouts", engine="cuda", decoder=cpu["decoder"])
        times = (cpu["median us"], cuda["median us"], cuda["kernels us"])
        rows.append([f"`{cpu['decoder']}`", count(cpu["candidates"]), *map(number, times)])
    return table(["decoder", "candidates", "cpu", "cuda", "kernels"], rows)


def oriented(gpu):
    rows = []
    for cpu in gpu.choose("oriented", rule="polygons", program="cpu"):
        n = cpu["n"]
        cuda, mmcv = (gpu.one("oriented", rule="polygons", n=n, program=name)["median us"]
                      for name in ("cuda", "mmcv's algorithm"))
        rows.append([count(n), count(cpu["survivors"]), number(cpu["median us"]), number(cuda), ratio(mmcv, cpu["median us"])])
    return table(["n", "survivors", "cpu", "cuda", "mmcv's algorithm / cpu"], rows)


MASKS = ("none", "prototypes", "frame")


def masks(gpu):
    rows = []
    for objects in ("small", "medium", "large"):
        cpu, cuda = ([gpu.one("masks", objects=objects, masks=kind, engine=engine) for kind in MASKS]
                     for engine in ("cpu", "cuda"))
        times = [number(row["median us"]) for row in cpu] + [number(row["kernels us"]) for row in cuda]
        rows.append([objects, *times, *(f"{int(row['bytes downloaded']) / 1000:.1f}" for row in cuda)])
    names = [f"{what}, {kind}" for what in ("cpu", "kernels", "KB from the GPU") for kind in MASKS]
    return table(["objects", *names], rows)


def merging(gpu):
    places = [("crowded", 1312), ("crowded", 33337), ("scattered", 33337)]
    methods = ["greedy", "merge", "merge-transitive", "weighted-average", "matrix-linear", "weighted-fusion", "soft-linear"]
    rows = []
    for method in methods:
        cells = []
        for centers, n in places:
            for engine in ("cuda", "cpu"):
                found = gpu.choose("merging", centers=centers, n=n, method=method, engine=engine)
                cells.append(number(found[0]["median us"]) if found else "")
        rows.append([f"`{method}`", *cells])
    heading = [f"{centers} {count(n)}: cuda" if engine == "cuda" else "cpu" for centers, n in places for engine in ("cuda", "cpu")]
    return table(["method", *heading], rows)


def streams(gpu):
    rows = []
    for ours in gpu.choose("streams", work="element"):
        found = gpu.choose("streams", work="floor", pace=ours["pace"], streams=ours["streams"])
        columns = ("p50 us", "p99 us", "slowest p99 us")
        times = [number(row[column]) for row in (ours, *found) for column in columns]
        rows.append([ours["pace"], ours["streams"], *times, *[""] * (6 - len(times))])
    heading = ["each", "elements", "p50", "p99", "slowest p99", "floor: p50", "p99", "slowest p99"]
    return table(heading, rows)


def kernels(gpu):
    sizes = [200, 698, 1027, 2895]
    ours = [gpu.one("kernels", workload="windows, IoU 0.3", n=n) for n in sizes]
    both = [number(float(row["map us"]) + float(row["reduce us"])) for row in ours]
    rows = [["map + reduce", *both], ["with decode and publication", *(number(row["all us"]) for row in ours)]]
    slots = {n: [row for row in gpu.choose("kernels-paper", n=n)] for n in sizes}
    for at, title in ((0, "paper, 4096: memset, map, reduce"), (1, "paper, fitted: memset, map, reduce")):
        rows.append([title, *(number(slots[n][at]["all us"]) for n in sizes)])
    return table(["n", *map(count, sizes)], rows)


def batches(gpu):
    columns = ["decode us", "map us", "reduce us", "publish us", "all us", "run us, wall"]
    rows = [[row["images"], *(number(row[column]) for column in columns)]
            for row in gpu.choose("batches", **{"found by": "stride"})]
    return table(["images", "decode", "map", "reduce", "publish", "all", "until the host has it"], rows)


def in_python(gpu):
    cell = lambda row: f"{number(row['nmsfilter us'])} ({number(row['PyTorch us'])})"
    works = ["nms, GPU", "batched_nms, GPU", "nms, CPU", "batched_nms, CPU"]
    sizes = list(dict.fromkeys(row["n"] for row in gpu.choose("python", work=works[0])))
    rows = [[count(n), *(cell(row[0]) if (row := gpu.choose("python", work=work, n=n)) else "" for work in works)]
            for n in sizes]
    return table(["boxes", *(f"`{name}`, {device}" for name, device in (work.split(", ") for work in works))], rows)


def decoders(gpu):
    rows = [[title, count(row["n"]), number(row["nmsfilter us"]), ratio(row["PyTorch us"], row["nmsfilter us"])]
            for work, title in (("decode", "images"), ("COCO", "candidates, COCO's settings"))
            for row in gpu.choose("python", work=work)]
    return table(["", "n", "`Decoder`", "PyTorch / `Decoder`"], rows)


def deepstream(gpu):
    rows = [[row["frames"], number(row["GPU us"]), f"{number(row['mean us'])} ({number(row['p99 us'])})",
             count(row["bytes up"]), count(row["bytes down"]), f"{float(row['cores at 50/s']):.3f}"]
            for row in gpu.choose("deepstream", tensors="in a row")]
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
        rows.append([title, count(ours["n"]), count(ours["survivors"]), number(ours["median us"]), *others])
    return table(["boxes", "n", "survivors", "cpu", "OpenCV", "torchvision", "nvinfer"], rows)


def two_cores(cpu):
    rows = [["element, 84x8400", f"{count(row['candidates'])} candidates", number(row["median us"]), ""]
            for row in cpu.choose("element", engine="cpu")]
    rows += [[f"`{row['decoder']}`", f"{count(row['candidates'])} candidates", number(row["median us"]), ""]
             for row in cpu.choose("layouts", engine="cpu")]
    for row in cpu.choose("oriented", rule="polygons", program="cpu"):
        peers = cpu.choose("oriented-peers", n=row["n"], program="OpenCV") if cpu.has("oriented-peers") else []
        times = ratio(peers[0]["median us"], row["median us"]) if peers else ""
        rows.append(["oriented boxes", count(row["n"]), number(row["median us"]), times])
    rows += [["masks", f"{row['objects']} objects, {row['masks']}", number(row["median us"]), ""]
             for row in cpu.choose("masks", engine="cpu", masks="prototypes")]
    return table(["", "", "cpu", "OpenCV / cpu"], rows)


def readme(gpu):
    names = ["oscars 360", "oscars 698", "oscars 2997"]
    times = [[number(gpu.one("candidates", list=name, engine=engine)["median us"]) for name in names] for engine in ("cpu", "cuda")]
    rows = [["decode and suppress 360, 698, 2997 boxes", *(", ".join(each) for each in times)]]
    ours = [gpu.one("candidates", list="oscars 698", engine=engine)["median us"] for engine in ("cpu", "cuda")]
    theirs = [peer(gpu, "oscars 698", f"torchvision, {device}", us) for device, us in zip(("CPU", "GPU"), ours)]
    rows.append(["torchvision with 698 boxes", *(f"{times} times as long" if times else "" for times in theirs)])
    whole = [gpu.one("element", candidates=698, engine=engine, **{"tensor memory": memory})["median us"]
             for engine, memory in (("cpu", "host"), ("cuda", "device"))]
    rows.append(["the whole element, YOLOv8's 84x8400, 698 candidates", *map(number, whole)])
    return table([f"microseconds, commit {gpu.text('commit')}", "CPU", "GPU"], rows)


def machine(results, title):
    facts = {row["machine"]: row[""] for row in results.choose("machine")}
    gpu = [] if facts["GPU"].startswith("none") else [facts["GPU"]]
    text = "; ".join([*gpu, facts["processor"], facts["system"], facts["GStreamer"]])
    return table([title, text], [["commit", f"{results.text('commit')}, {results.text('date')}"]])


def gpu_machine(gpu):
    return machine(gpu, "*GPU machine*")


def cpu_machine(cpu):
    return machine(cpu, "*two cores*")


OF_GPU = [gpu_machine, suppression, growth, element, start, families, oriented, masks, merging, streams, kernels, batches,
          in_python, decoders, deepstream, chain, tiles, readme]
OF_CPU = [cpu_machine, two_cores_peers, two_cores]
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
