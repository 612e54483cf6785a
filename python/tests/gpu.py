# SPDX-License-Identifier: MIT OR Apache-2.0
"""On a machine with a GPU and PyTorch: PYTHONPATH=FOLDER python gpu.py [--no-times] [--csv FILE]

FOLDER has the unpacked wheel. Checks nms, batched_nms and decode of PyTorch's CUDA tensors against torchvision and against
this package's results on the CPU: on other streams, without the host's synchronization, in the capture of a CUDA graph. Then
prints where the time of a call goes, and times beside torchvision, and writes the latter to FILE. Needs no other file; the exit
status is 0 if everything is equal.
"""

import argparse
import csv
import statistics
import sys
import time
import traceback

import numpy
import torch

import nmsfilter

try:
    import torchvision
except ImportError:
    torchvision = None

CUDA = torch.device("cuda")
failures = []
measured = [("work", "n", "kept", "nmsfilter us", "PyTorch us")]


def check(name):
    def run(function):
        began = time.perf_counter()
        try:
            function()
            torch.cuda.synchronize()
            print(f"ok      {name} ({time.perf_counter() - began:.1f} s)")
        except Exception:
            failures.append(name)
            print(f"FAILED  {name}")
            traceback.print_exc()
        return function

    return run


def boxes(count, seed, crowd=0.5):
    generator = torch.Generator().manual_seed(seed)
    corner = torch.rand(count, 2, generator=generator) * (20 * crowd * count**0.5)
    size = torch.rand(count, 2, generator=generator) * 60 + 20
    scores = torch.randperm(count, generator=generator).float() / max(count, 1)
    groups = torch.randint(0, 80, (count,), generator=generator)
    return torch.cat([corner, corner + size], 1), scores, groups


def yolov8(images, seed, classes=80, anchors=8400, power=400):
    """Outputs [B, 4+C, N]. With the power 400 a few hundred scores are above 0.25; a higher power makes scores lower."""
    generator = torch.Generator().manual_seed(seed)
    output = torch.rand(images, 4 + classes, anchors, generator=generator)
    output[:, :2] *= 640
    output[:, 2:4] = output[:, 2:4] * 100 + 10
    output[:, 4:] = (output[:, 4:] ** power) * 0.9
    return output


def same(found, expected, what=""):
    assert found.device.type == "cuda" and torch.equal(found.cpu(), expected), what


@check("nms and batched_nms equal those of the CPU, and torchvision's")
def _():
    for count in (0, 1, 2, 31, 100, 1000, 5000, 20000):
        b, s, g = boxes(count, count)
        for threshold in (0.1, 0.5, 0.9):
            expected = nmsfilter.nms(b, s, threshold)
            found = nmsfilter.nms(b.to(CUDA), s.to(CUDA), threshold)
            assert found.dtype == torch.int64
            same(found, expected, (count, threshold))
            expected = nmsfilter.batched_nms(b, s, g, threshold)
            same(nmsfilter.batched_nms(b.to(CUDA), s.to(CUDA), g.to(CUDA), threshold), expected, (count, threshold))
            if torchvision is not None and count <= 5000:
                assert torch.equal(torchvision.ops.nms(b, s, threshold), nmsfilter.nms(b, s, threshold))
                theirs = torchvision.ops.nms(b.to(CUDA), s.to(CUDA), threshold)
                different = set(theirs.tolist()) ^ set(nmsfilter.nms(b, s, threshold).tolist())
                # torchvision's kernel contracts multiply-adds: pairs at the threshold can differ.
                assert len(different) <= 2, (count, threshold, different)


@check("views with strides, float16, oriented boxes, other integers, boxes without area")
def _():
    b, s, g = boxes(500, 1)
    rows = torch.cat([b, s[:, None], g[:, None].float()], 1).to(CUDA)
    same(nmsfilter.nms(rows[:, :4], rows[:, 4], 0.5), nmsfilter.nms(b, s, 0.5))
    same(nmsfilter.nms(b.half().to(CUDA), s.to(CUDA), 0.5), nmsfilter.nms(b.half(), s, 0.5))
    same(nmsfilter.batched_nms(b.to(CUDA), s.to(CUDA), g.int().to(CUDA), 0.5), nmsfilter.batched_nms(b, s, g, 0.5))
    far = g * 10**12
    same(nmsfilter.batched_nms(b.to(CUDA), s.to(CUDA), far.to(CUDA), 0.5), nmsfilter.batched_nms(b, s, far, 0.5))
    o = torch.cat([b[:, :2], b[:, 2:] - b[:, :2], s[:, None] * 6 - 3], 1)
    same(nmsfilter.nms_rotated(o.to(CUDA), s.to(CUDA), 0.3), nmsfilter.nms_rotated(o, s, 0.3))
    b[100:200, 2] = b[100:200, 0]
    same(nmsfilter.nms(b.to(CUDA), s.to(CUDA), 0.5), nmsfilter.nms(b, s, 0.5))


class OnlyInterface:
    def __init__(self, tensor):
        self._tensor = tensor
        self.__cuda_array_interface__ = dict(tensor.__cuda_array_interface__, stream=1)


@check("__cuda_array_interface__ in and out")
def _():
    b, s, _ = boxes(500, 2)
    kept = nmsfilter.nms(OnlyInterface(b.to(CUDA)), OnlyInterface(s.to(CUDA)), 0.5)
    assert isinstance(kept, nmsfilter.Array) and kept.__dlpack_device__() == (2, 0)
    same(torch.as_tensor(kept, device=CUDA), nmsfilter.nms(b, s, 0.5))
    same(torch.from_dlpack(kept), nmsfilter.nms(b, s, 0.5))


@check("another stream, on which the inputs are still being written")
def _():
    b, s, _ = boxes(2000, 3)
    expected = nmsfilter.nms(b, s, 0.5)
    output = yolov8(2, 3)
    decoded = nmsfilter.decode(output, "yolov8")
    slow = torch.rand(4000, 4000, device=CUDA)
    host = [tensor.pin_memory() for tensor in (b, s, output)]
    for _ in range(10):
        stream = torch.cuda.Stream()
        with torch.cuda.stream(stream):
            b2, s2, output2 = (torch.zeros_like(tensor, device=CUDA) for tensor in host)
            for _ in range(10):
                slow = slow @ slow * 0.0 + 0.5
            for to, tensor in zip((b2, s2, output2), host):
                to.copy_(tensor, non_blocking=True)
            found = nmsfilter.decode(output2, "yolov8")
            total = found.boxes.sum() + found.counts.sum()
            kept = nmsfilter.nms(b2, s2, 0.5)
        stream.synchronize()
        same(kept, expected)
        same(found.boxes, decoded.boxes)
        assert torch.isclose(total.cpu(), decoded.boxes.sum() + decoded.counts.sum(), rtol=1e-4)
    default = torch.cuda.current_stream()
    stream = torch.cuda.Stream()
    same(nmsfilter.nms(b.to(CUDA), s.to(CUDA), 0.5, stream=default), expected)
    found = nmsfilter.decode(output.to(CUDA), "yolov8", stream=default.cuda_stream)
    same(found.boxes, decoded.boxes)


@check("decode without the host's synchronization and without a copy")
def _():
    for images in (1, 4, 16):
        output = yolov8(images, images)
        expected = nmsfilter.decode(output, "yolov8", max_detections=300)
        device = output.to(CUDA)
        decoder = nmsfilter.Decoder("yolov8", max_detections=300)
        decoder(device)  # The first call allocates.
        torch.cuda.synchronize()
        torch.cuda.set_sync_debug_mode("error")
        try:
            found = decoder(device)
            top = found.boxes * 2  # Work that follows in the stream.
        finally:
            torch.cuda.set_sync_debug_mode("default")
        assert found.engine == "cuda"
        assert decoder(device, results="host").bytes_uploaded == 0
        for field in ("boxes", "scores", "classes", "anchors", "counts"):
            same(getattr(found, field), getattr(expected, field), field)
        assert torch.equal(top.cpu(), expected.boxes * 2)
        half = device.half()
        # A decoder of its own: another element type needs another graph, and the host waits where one is replaced.
        same(nmsfilter.Decoder("yolov8", max_detections=300)(half).boxes, decoder(half.cpu()).boxes)
        assert expected.counts.min() > 20, expected.counts
        # The call returns before the GPU has finished what was submitted before.
        slow = torch.rand(8000, 8000, device=CUDA)
        torch.cuda.synchronize()
        began = time.perf_counter()
        for _ in range(20):
            slow = slow @ slow * 0.0 + 0.5
        submitted = time.perf_counter() - began
        decoder(device)
        returned = time.perf_counter() - began
        torch.cuda.synchronize()
        done = time.perf_counter() - began
        assert returned < 0.5 * done, f"decode returned after {returned} of {done} s: it waited for the GPU"
        print(f"        {images} images: submitted {submitted * 1e3:.2f} ms, decode returned {returned * 1e3:.2f} ms, "
              f"done {done * 1e3:.2f} ms")


@check("results on the host: keypoints, masks")
def _():
    generator = torch.Generator().manual_seed(4)
    output = torch.rand(1, 56, 8400, generator=generator)
    output[:, :2] *= 640
    output[:, 2:4] = output[:, 2:4] * 100 + 10
    output[:, 4] = output[:, 4] ** 60
    output[:, 5:] *= 640
    expected = nmsfilter.decode(output, "yolov8-pose")
    found = nmsfilter.decode(output.to(CUDA), "yolov8-pose", results="host")
    numpy.testing.assert_array_equal(numpy.asarray(found.keypoints), expected.keypoints.numpy())
    columns = nmsfilter.decode(output.to(CUDA), "yolov8-pose").columns
    same(columns, expected.columns)


@check("the capture of a CUDA graph")
def _():
    first, second = yolov8(4, 10), yolov8(4, 11)
    device = first.to(CUDA)
    decoder = nmsfilter.Decoder("yolov8", max_detections=300)
    decoder(device)
    torch.cuda.synchronize()
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        found = decoder(device)
    for output in (second, first, second):
        device.copy_(output)
        graph.replay()
        expected = nmsfilter.decode(output, "yolov8", max_detections=300)
        for field in ("boxes", "scores", "classes", "anchors", "counts"):
            same(getattr(found, field), getattr(expected, field), field)


@check("results are not overwritten by the next run")
def _():
    decoder = nmsfilter.Decoder("yolov8")
    outputs = [yolov8(2, seed).to(CUDA) for seed in range(5)]
    found = [decoder(output) for output in outputs]
    for output, result in zip(outputs, found):
        same(result.boxes, nmsfilter.decode(output.cpu(), "yolov8").boxes)


@check("memory does not grow")
def _():
    decoder = nmsfilter.Decoder("yolov8")
    output, (b, s, _) = yolov8(4, 1).to(CUDA), boxes(1000, 1)
    b, s = b.to(CUDA), s.to(CUDA)

    def free():
        torch.cuda.synchronize()
        return torch.cuda.mem_get_info()[0]

    def work():
        for _ in range(300):
            decoder(output)
            nmsfilter.nms(b, s, 0.5)

    work()
    before = free()
    work()
    assert before - free() < 1 << 20, (before, free())


def median(function, wait=torch.cuda.synchronize):
    """Microseconds of a call, with the device's work if `wait` waits for it."""
    began = time.perf_counter()
    while time.perf_counter() - began < 0.1:
        function()
    wait()
    times = []
    began = time.perf_counter()
    while len(times) < 5 or time.perf_counter() - began < 0.4:
        start = time.perf_counter()
        function()
        wait()
        times.append((time.perf_counter() - start) * 1e6)
    return statistics.median(times)


def report(work, n, kept, ours, theirs):
    measured.append((work, n, kept, f"{ours:.1f}", f"{theirs:.1f}"))
    print(f"{work:16} {n:6}, {kept:5} kept: ours {ours:9.1f}, PyTorch {theirs:9.1f}, ratio {theirs / ours:5.1f}")


def overhead():
    """Where the time of a call goes. Parts are measured by turns, so that all have equal conditions."""
    torch.set_num_threads(1)
    none, device = boxes(0, 1), {}
    one = torch.zeros(1, device=CUDA)
    parts = {
        "torch.cuda.synchronize alone": torch.cuda.synchronize,
        "the least kernel of PyTorch (zero_ of 1 number)": one.zero_,
        "torch.empty of 100 int64": lambda: torch.empty(100, dtype=torch.int64, device=CUDA),
    }

    def add(name, function, *tensors):
        parts[f"{name}, on the CPU"] = lambda: function(*tensors)
        device[name] = [tensor.to(CUDA) for tensor in tensors]
        parts[f"{name}, on the GPU"] = lambda: function(*device[name])

    for count in (0, 100, 1000):
        b, s, _ = boxes(count, 1, crowd=0.4) if count else none
        add(f"nms of {count} boxes", lambda b, s: nmsfilter.nms(b, s, 0.5), b, s)
    decoder = nmsfilter.Decoder("yolov8", max_detections=300)
    output = yolov8(1, 7).to(CUDA)
    parts["Decoder, 1 image [1,84,8400], on the GPU"] = lambda: decoder(output)

    clock, wait, found = time.perf_counter_ns, torch.cuda.synchronize, {name: ([], []) for name in parts}
    for repetition in range(2200):
        for name, part in parts.items():
            wait()
            began = clock()
            part()
            returned = clock()
            wait()
            done = clock()
            if repetition >= 200:
                found[name][0].append((returned - began) / 1000)
                found[name][1].append((done - began) / 1000)
    print(f"\n{torch.cuda.get_device_name()}, torch {torch.__version__}: microseconds until the call returns, and until a "
          "torch.cuda.synchronize after it returns; 2000 repetitions")
    print(f"{'':48}   returns: least median |    done: least median")
    for name, times in found.items():
        row = " |".join(f"{min(of):17.1f} {statistics.median(of):6.1f}" for of in times)
        print(f"{name:48}{row}")


def times():
    if torchvision is None:
        print("torchvision is not installed: no times beside it")
        return
    print(f"\n{torch.cuda.get_device_name()}, torch {torch.__version__}, torchvision {torchvision.__version__}; "
          "microseconds until the result is on the GPU, median")
    torch.set_num_threads(1)
    for count in (100, 1000, 10000, 30000):
        b, s, g = boxes(count, 1, crowd=0.4)
        kept = len(nmsfilter.nms(b, s, 0.5))
        for name, arguments, ours, theirs in (
            ("nms", [b, s], nmsfilter.nms, torchvision.ops.nms),
            ("batched_nms", [b, s, g], nmsfilter.batched_nms, torchvision.ops.batched_nms),
        ):
            arguments_there = [argument.to(CUDA) for argument in arguments]
            pair = [median(lambda: function(*arguments_there, 0.5)) for function in (ours, theirs)]
            report(f"{name}, GPU", count, kept, *pair)
            # torchvision takes seconds for more.
            if count <= 10000:
                pair = [median(lambda: function(*arguments, 0.5), lambda: None) for function in (ours, theirs)]
                report(f"{name}, CPU", count, kept, *pair)
    print("\ndecode of [B,84,8400], 300 detections, beside threshold and batched_nms for each image in PyTorch")
    for images in (1, 8, 32):
        output = yolov8(images, 7).to(CUDA)
        decoder = nmsfilter.Decoder("yolov8", max_detections=300)

        def theirs():
            scores, classes = output[:, 4:].max(1)
            result = []
            for image in range(images):
                wanted = scores[image] >= 0.25
                rows = output[image, :4, wanted].T
                corners = torch.cat([rows[:, :2] - rows[:, 2:] / 2, rows[:, :2] + rows[:, 2:] / 2], 1)
                kept = torchvision.ops.batched_nms(corners, scores[image, wanted], classes[image, wanted], 0.45)[:300]
                result.append(corners[kept])
            return result

        pair = [median(lambda: decoder(output)), median(theirs)]
        began = time.perf_counter()
        for _ in range(100):
            decoder(output)
        enqueued = (time.perf_counter() - began) * 1e4
        torch.cuda.synchronize()
        report("decode", images, int(decoder(output).counts.sum()), *pair)
        print(f"    the call returns after {enqueued:.1f}")
    print("\nCOCO's evaluation settings: [1,84,8400], score 0.001, each class above it, IoU 0.7, 300 detections")
    for power in (2000, 400, 100):
        output = yolov8(1, 9, power=power).to(CUDA)
        decoder = nmsfilter.Decoder(
            "yolov8", score_threshold=0.001, iou_threshold=0.7, multi_label=True, max_detections=300)

        def theirs():
            anchors, classes = (output[0, 4:].T > 0.001).nonzero(as_tuple=True)
            rows, scores = output[0, :4].T[anchors], output[0, 4:].T[anchors, classes]
            corners = torch.cat([rows[:, :2] - rows[:, 2:] / 2, rows[:, :2] + rows[:, 2:] / 2], 1)
            kept = torchvision.ops.batched_nms(corners, scores, classes, 0.7)[:300]
            return corners[kept], scores[kept], classes[kept]

        same(decoder(output).boxes, decoder(output.cpu()).boxes, f"power {power}")
        pair = [median(lambda: decoder(output)), median(theirs)]
        candidates = int((output[0, 4:] > 0.001).sum())
        report("COCO", candidates, int(decoder(output).counts.sum()), *pair)


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("--no-times", action="store_true")
    parser.add_argument("--csv")
    options = parser.parse_args()
    if not options.no_times:
        overhead()
        times()
    if options.csv:
        with open(options.csv, "w", newline="") as file:
            csv.writer(file).writerows(measured)
    print(f"\n{len(failures)} failed" + "".join(f"\n    {name}" for name in failures))
    sys.exit(1 if failures else 0)
