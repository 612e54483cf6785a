# SPDX-License-Identifier: MIT OR Apache-2.0
"""Times torchvision.ops.nms on the GPU for boxes like those of `nmsbench kernels`. Prints medians of CUDA event times."""

import sys

import torch
import torchvision


def median_us(work, count):
    for _ in range(20):
        work()
    torch.cuda.synchronize()
    times = []
    for _ in range(count):
        begin, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
        begin.record()
        work()
        end.record()
        torch.cuda.synchronize()
        times.append(begin.elapsed_time(end) * 1000)
    return sorted(times)[count // 2]


def main():
    rows = [[float(number) for number in line.split(",")] for line in open(sys.argv[1])]
    windows = torch.tensor(rows).cuda()
    corners = windows[:, [0, 1, 0, 1]]
    corners[:, 2:] += windows[:, 2:3]
    print(f"torchvision {torchvision.__version__} nms, GPU us")
    for n in (200, 360, 698, 1027, 2048, 2895, 2997):
        boxes, scores = corners[:n].contiguous(), windows[:n, 3].contiguous()
        left = len(torchvision.ops.nms(boxes, scores, 0.3))
        print(f"windows, IoU 0.3   {n:6} {left:6} {median_us(lambda: torchvision.ops.nms(boxes, scores, 0.3), 200):10.2f}")
    generator = torch.Generator().manual_seed(1)
    for n in (8400, 30000):
        center = torch.rand(n, 2, generator=generator) * torch.tensor([1920.0, 1080.0])
        half = 8 + 50 * torch.rand(n, 1, generator=generator)
        boxes = torch.cat([center - half, center + half], 1).cuda()
        scores = torch.rand(n, generator=generator).cuda()
        left = len(torchvision.ops.nms(boxes, scores, 0.45))
        print(f"uniform, IoU 0.45   {n:6} {left:6} {median_us(lambda: torchvision.ops.nms(boxes, scores, 0.45), 30):10.2f}")


main()
