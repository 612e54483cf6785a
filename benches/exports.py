#!/usr/bin/env python3
# SPDX-License-Identifier: MIT OR Apache-2.0
"""Exports detectors with random weights as their documents say, and compares `ortinference ! nmsfilter`, with no property
set but those of PROPERTIES, with the models' own post-processing in Python.

exports.py [NAME...]: a line for each model. Needs torch, torchvision, transformers, ultralytics, onnx and onnxruntime in
one environment, GStreamer's programs, GST_PLUGIN_PATH and ORT_DYLIB_PATH. Nothing is downloaded.
"""
import functools
import json
import os
import shutil
import subprocess
import sys
import tempfile
import unittest.mock
import warnings

import numpy as np
import torch

warnings.simplefilter("ignore")
THRESHOLD = 0.25  # nmsfilter's
SIZE = (160, 192)  # height and width of exported inputs


def run(model, pictures, properties="", suppression=""):
    """The objects of nmsfilter in each picture: class, score and corners in pixels; or an error's text."""
    height, width, _ = pictures[0].shape
    with tempfile.NamedTemporaryFile(suffix=".rgb") as file:
        file.write(b"".join(picture.tobytes() for picture in pictures))
        file.flush()
        pipeline = (
            f"filesrc location={file.name} ! rawvideoparse format=rgb width={width} height={height} "
            f"! ortinference provider=cpu model={model} {properties} ! nmsfilter {suppression} ! detectionjson ! fdsink"
        )
        done = subprocess.run(["gst-launch-1.0", "-q", *pipeline.split()], capture_output=True, text=True)
    if done.returncode:
        return next(line for line in done.stderr.splitlines() if line.startswith("ERROR"))
    frames = []
    for line in done.stdout.splitlines():
        found = []
        for detection in (entry["detection"] for entry in json.loads(line)["objects"]):
            box = detection["bounding_box"]
            corners = [box["x_min"] * width, box["y_min"] * height, box["x_max"] * width, box["y_max"] * height]
            found.append([detection["label_id"], detection["confidence"], *corners])
        frames.append(np.array(found, float).reshape(-1, 6))
    return frames


def outputs_of(path, picture, mean=0.0, std=1.0):
    """The outputs by name, of ONNX Runtime in Python."""
    session = session_of(path)
    pixels = ((picture / np.float32(255) - mean) / std).astype(np.float32).transpose(2, 0, 1)
    inputs = session.get_inputs()
    feeds = {inputs[0].name: pixels if len(inputs[0].shape) == 3 else pixels[None]}
    feeds.update({other.name: np.ones((1, *picture.shape[:2]), np.int64) for other in inputs[1:]})
    return dict(zip([output.name for output in session.get_outputs()], session.run(None, feeds)))


@functools.lru_cache(maxsize=1)
def session_of(path):
    import onnxruntime

    onnxruntime.set_default_logger_severity(3)
    return onnxruntime.InferenceSession(path, providers=["CPUExecutionProvider"])


def differences(ours, theirs):
    """The number of objects of each that the other does not have: class, score to 0.002, edges to 0.3 pixels."""
    left = list(ours)
    missing = []
    for row in theirs:
        tolerance = np.array([0.5, 0.002, *[0.3] * 4])
        found = next((i for i, other in enumerate(left) if (abs(other - row) < tolerance).all()), None)
        missing.append(row) if found is None else left.pop(found)
    is_clear = lambda row: row[1] > THRESHOLD + 0.002
    return sum(map(is_clear, left)), sum(map(is_clear, missing))


def rows(classes, scores, boxes, size):
    """Objects above the threshold, with the boxes cut at the picture's edges; those without area are not detections."""
    height, width = size
    boxes = np.asarray(boxes, float).reshape(-1, 4).clip(0, [width, height, width, height])
    table = np.column_stack([np.asarray(classes, float), np.asarray(scores, float), boxes])
    return table[(table[:, 1] > THRESHOLD) & (table[:, 4] > table[:, 2]) & (table[:, 5] > table[:, 3])]


def scaled(layers, passing):
    """Scales the weights of the last layers until some objects pass."""
    for _ in range(40):
        if passing() >= 3:
            return
        for layer in layers:
            layer.weight.data *= 1.5
    raise RuntimeError("no object passes")


def pixels(size):
    return torch.from_numpy(random_picture(0, size).transpose(2, 0, 1)[None] / np.float32(255))


def save(path, model, inputs, names, outputs, dynamic):
    torch.onnx.export(
        model, inputs, path, dynamo=False, opset_version=17, input_names=names, output_names=outputs, dynamic_axes=dynamic
    )


def torchvision_detector(path, make, heads, outputs, is_list=False, names=True):
    from torchvision.models import detection

    keywords = {} if make.startswith("ssd") else {"min_size": SIZE[0], "max_size": 2 * SIZE[1]}
    model = getattr(detection, make)(weights=None, weights_backbone=None, **keywords).eval()

    if make.startswith("ssdlite"):  # Without statistics in its normalization, random features vanish.
        for layer in model.modules():
            layer.momentum = 1
        with torch.no_grad():
            model.train().head(list(model.backbone(pixels((320, 320)).repeat(2, 1, 1, 1)).values()))
        model.eval()

    def passing():
        with torch.no_grad():
            return (model(list(pixels(SIZE)))[0]["scores"] > THRESHOLD).sum()

    head = functools.reduce(getattr, heads.split("."), model)
    layers = [layer for layer in head.modules() if isinstance(layer, (torch.nn.Conv2d, torch.nn.Linear))]
    scaled(layers if make.startswith("ssd") else layers[-1:], passing)
    example = torch.rand(3, *SIZE)
    example = [example] if is_list else example[None]
    dynamic = None if is_list or not names else {name: [0] for name in outputs}
    save(path, model, (example,), ["images"] if names else None, outputs if names else None, dynamic)

    def theirs(picture):
        found = outputs_of(path, picture)
        found = found if names else dict(zip(outputs, found.values()))
        return rows(found["labels"], found["scores"], found["boxes"], SIZE)

    return theirs, SIZE, 2


class Outputs(torch.nn.Module):
    """The outputs that optimum exports."""

    def __init__(self, model):
        super().__init__()
        self.model = model

    def forward(self, pixel_values, pixel_mask=None):
        mask = {} if pixel_mask is None else {"pixel_mask": pixel_mask}
        result = self.model(pixel_values=pixel_values, **mask)
        return result.logits, result.pred_boxes


def transformers_detector(path, kind, size, has_mask=False, classes=None):
    import transformers

    small = {"encoder_ffn_dim": 32, "decoder_ffn_dim": 32, "encoder_attention_heads": 2, "decoder_attention_heads": 2}
    stages = {"embedding_size": 16, "depths": [1, 1, 1, 1], "layer_type": "basic"}
    config = getattr(transformers, f"{kind}Config")
    if kind == "Detr":
        backbone = transformers.ResNetConfig(hidden_sizes=[16, 32, 32, 64], out_features=["stage4"], **stages)
        config = config(
            use_timm_backbone=False, use_pretrained_backbone=False, backbone=None, backbone_config=backbone, num_labels=classes or 91,
            num_queries=20, d_model=32, encoder_layers=1, decoder_layers=1, **small,
        )
    elif kind == "Yolos":
        config = config(
            hidden_size=32, num_hidden_layers=2, num_attention_heads=2, intermediate_size=32, image_size=size,
            num_detection_tokens=20, num_labels=classes or 91,
        )
    else:
        backbone = transformers.RTDetrResNetConfig(
            hidden_sizes=[16, 32, 64, 64], out_features=["stage2", "stage3", "stage4"], **stages
        )
        config = config(
            backbone_config=backbone, encoder_hidden_dim=32, encoder_in_channels=[32, 64, 64], feat_strides=[8, 16, 32],
            d_model=32, num_queries=300, decoder_in_channels=[32] * 3, decoder_layers=2, num_denoising=0, num_labels=classes or 80,
            anchor_image_size=None, **small,
        )
    model = getattr(transformers, f"{kind}ForObjectDetection")(config).eval()
    processor = getattr(transformers, f"{kind if kind in ('Detr', 'Yolos') else 'RTDetr'}ImageProcessor")()

    normalization = [processor.image_mean, processor.image_std] if kind in ("Detr", "Yolos") else [0.0, 1.0]

    def post_processed(outputs, size):
        found = processor.post_process_object_detection(outputs, THRESHOLD, target_sizes=[size])[0]
        return rows(found["labels"], found["scores"], found["boxes"], size)

    def passing():
        with torch.no_grad():
            return len(post_processed(model(pixel_values=pixels(size)), size))

    def theirs(picture):
        found = {name: torch.from_numpy(array) for name, array in outputs_of(path, picture, *normalization).items()}
        return post_processed(type("Outputs", (), found), size)

    # As they begin, all queries give the same object.
    for name, parameter in model.named_parameters():
        if parameter.dim() > 1 and "backbone" not in name:
            gain = 6 if any(part in name for part in ("q_proj", "k_proj", "query", "key", "tokens")) else 1 if "bbox" in name else 2
            torch.nn.init.normal_(parameter, std=gain * (parameter[0].numel() if parameter.dim() == 4 else parameter.shape[-1]) ** -0.5)
    heads = [layer for name, layer in model.named_modules() if "class" in name or "score" in name]
    scaled([head for head in heads if isinstance(head, torch.nn.Linear)], passing)
    names = ["pixel_values"] + ["pixel_mask"] * has_mask
    example = (torch.rand(1, 3, *size), torch.ones(1, *size, dtype=torch.int64))[: len(names)]
    dynamic = {
        "pixel_values": dict(enumerate(["batch_size", "num_channels", "height", "width"])),
        "pixel_mask": {0: "batch_size", 1: "height", 2: "width"},
        **{name: {0: "batch_size", 1: "num_queries"} for name in ["logits", "pred_boxes"]},
    }
    if not has_mask:
        del dynamic["pixel_mask"]
    save(path, Outputs(model), example, names, ["logits", "pred_boxes"], dynamic)
    return theirs, size, 2


def ultralytics_detector(path, task, configuration, nms=False):
    """The picture is lower than the input, so that there is a border above and below; that of RT-DETR is stretched."""
    import ultralytics
    from ultralytics.utils import ops

    make = {"rtdetr": ultralytics.RTDETR, "world": ultralytics.YOLOWorld, "yoloe": ultralytics.YOLOE}.get(task, ultralytics.YOLO)
    model = make(configuration)
    for name, module in model.model.named_modules():
        for layers in (getattr(module, "cv3", None), getattr(module, "one2one_cv3", None)):
            for layer in layers if isinstance(layers, torch.nn.ModuleList) else []:
                last = layer[-1]
                last.weight.data *= 60
                last.bias.data.zero_()
        if hasattr(module, "logit_scale"):  # the heads of YOLO-World and YOLOE
            module.bias.data.zero_()
        if "score_head" in name and isinstance(module, torch.nn.Linear):  # those of RT-DETR
            torch.nn.init.normal_(module.weight, std=0.3)
    exported = model.export(format="onnx", imgsz=192, simplify=False, nms=nms, opset=17)
    shutil.move(exported, path)

    def theirs(picture):
        predictor = ultralytics.RTDETR(path) if task == "rtdetr" else ultralytics.YOLO(path, task=model.task)
        # Objects whose masks are empty are no objects of Ultralytics, but of nmsfilter.
        ops.process_mask = lambda prototypes, coefficients, boxes, *_, **__: torch.ones(len(boxes), 1, 1)
        # It leaves the order of equal scores open, of which random oriented models have many; here the first anchor is first.
        with unittest.mock.patch("torch.argsort", functools.partial(torch.argsort, stable=True)):
            found = predictor.predict(picture[..., ::-1], imgsz=192, conf=THRESHOLD, iou=0.45, verbose=False, max_det=300)[0]
        boxes = found.boxes if found.obb is None else found.obb
        return rows(boxes.cls, boxes.conf, boxes.xyxy, picture.shape[:2])

    return (theirs, (192, 192), 2) if task == "rtdetr" else (theirs, (128, 192), 1)


def random_picture(seed, size):
    """Rectangles of random colors on noise."""
    generator = np.random.default_rng(seed)
    height, width = size
    picture = generator.integers(0, 256, (height, width, 3), dtype=np.uint8)
    for _ in range(12):
        x, y = generator.integers(0, width - 8), generator.integers(0, height - 8)
        picture[y : y + generator.integers(8, height // 2), x : x + generator.integers(8, width // 2)] = generator.integers(0, 256, 3)
    return picture


MASK_OUTPUTS, POINT_OUTPUTS = ["masks"], ["keypoints", "keypoints_scores"]
TWO_STAGES, ONE_STAGE = ["boxes", "labels", "scores"], ["boxes", "scores", "labels"]
BOX, HEAD = "roi_heads.box_predictor.cls_score", "head.classification_head"
CASES = {
    "torchvision Faster R-CNN": (torchvision_detector, "fasterrcnn_mobilenet_v3_large_320_fpn", BOX, TWO_STAGES),
    "torchvision Faster R-CNN, [3,H,W]": (torchvision_detector, "fasterrcnn_mobilenet_v3_large_320_fpn", BOX, TWO_STAGES, True),
    "torchvision Faster R-CNN, without names": (torchvision_detector, "fasterrcnn_mobilenet_v3_large_320_fpn", BOX, TWO_STAGES, True, False),
    "torchvision Mask R-CNN": (torchvision_detector, "maskrcnn_resnet50_fpn", BOX, TWO_STAGES + MASK_OUTPUTS),
    "torchvision Keypoint R-CNN": (torchvision_detector, "keypointrcnn_resnet50_fpn", BOX, TWO_STAGES + POINT_OUTPUTS),
    "torchvision RetinaNet": (torchvision_detector, "retinanet_resnet50_fpn", HEAD, ONE_STAGE),
    "torchvision FCOS": (torchvision_detector, "fcos_resnet50_fpn", HEAD, ONE_STAGE),
    "torchvision SSD": (torchvision_detector, "ssd300_vgg16", HEAD, ONE_STAGE),
    "torchvision SSDlite": (torchvision_detector, "ssdlite320_mobilenet_v3_large", HEAD, ONE_STAGE),
    "Transformers DETR": (transformers_detector, "Detr", (800, 800)),
    "Transformers DETR, pixel_mask": (transformers_detector, "Detr", (800, 800), True),
    "Transformers YOLOS": (transformers_detector, "Yolos", (800, 800)),
    "Transformers RT-DETR": (transformers_detector, "RTDetr", (640, 640)),
    "Transformers RT-DETRv2": (transformers_detector, "RTDetrV2", (640, 640)),
    "Transformers D-FINE": (transformers_detector, "DFine", (640, 640)),
    "Ultralytics YOLOv8": (ultralytics_detector, "detect", "yolov8n.yaml"),
    "Ultralytics YOLOv8, nms=True": (ultralytics_detector, "detect", "yolov8n.yaml", True),
    "Ultralytics YOLOv8-seg, nms=True": (ultralytics_detector, "segment", "yolov8n-seg.yaml", True),
    "Ultralytics YOLOv8-obb, nms=True": (ultralytics_detector, "obb", "yolov8n-obb.yaml", True),
    "Ultralytics YOLOv8-pose, nms=True": (ultralytics_detector, "pose", "yolov8n-pose.yaml", True),
    "Ultralytics YOLO26": (ultralytics_detector, "detect", "yolo26n.yaml"),
    "Ultralytics YOLO26-seg": (ultralytics_detector, "segment", "yolo26n-seg.yaml"),
    "Ultralytics YOLO26-obb": (ultralytics_detector, "obb", "yolo26n-obb.yaml"),
    "Ultralytics YOLO26-pose": (ultralytics_detector, "pose", "yolo26n-pose.yaml"),
    "Ultralytics RT-DETR": (ultralytics_detector, "rtdetr", "rtdetr-resnet50.yaml"),
    "Ultralytics YOLO-World": (ultralytics_detector, "world", "yolov8s-worldv2.yaml"),
    "Ultralytics YOLOE": (ultralytics_detector, "yoloe", "yoloe-v8s.yaml"),
    "Transformers DETR, 6 classes": (transformers_detector, "Detr", (800, 800), False, 6),
    "Transformers YOLOS, 6 classes": (transformers_detector, "Yolos", (800, 800), False, 6),
    "Transformers RT-DETR, 5 classes": (transformers_detector, "RTDetr", (640, 640), False, 5),
    "Transformers D-FINE, 5 classes": (transformers_detector, "DFine", (640, 640), False, 5),
    **{
        f"Ultralytics {name}": (ultralytics_detector, "detect", f"{name}.yaml")
        for name in ["yolov3u", "yolov3-tiny", "yolov5n", "yolov6n", "yolov9t", "yolov10n", "yolo11n", "yolo12n"]
    },
    **{
        f"Ultralytics {name}, nms=True": (ultralytics_detector, "detect", f"{name}.yaml", True)
        for name in ["yolov10n", "yolo11n", "yolo12n", "yolo26n"]
    },
    **{
        f"Ultralytics {name}-{end}": (ultralytics_detector, task, f"{name}-{end}.yaml")
        for name in ["yolov8n", "yolo11n"]
        for task, end in [("segment", "seg"), ("pose", "pose"), ("obb", "obb")]
    },
    **{
        f"Ultralytics {name}-{end}, nms=True": (ultralytics_detector, task, f"{name}-{end}.yaml", True)
        for name in ["yolo11n", "yolo26n"]
        for task, end in [("segment", "seg"), ("pose", "pose"), ("obb", "obb")]
    },
}
# Of ortinference and nmsfilter, by the end of the case's name.
PROPERTIES = {
    "6 classes": ("signature=transformers-softmax",),
    "5 classes": ("signature=transformers-sigmoid",),
    "n-obb": ("", "method=map-reduce overlap=prob-iou"),
}


def main():
    for name, (export, *arguments) in CASES.items():
        if sys.argv[1:] and not any(part in name for part in sys.argv[1:]):
            continue
        torch.manual_seed(5)
        with tempfile.TemporaryDirectory() as folder:
            os.chdir(folder)
            path = f"{folder}/model.onnx"
            try:
                theirs, size, repeat = export(path, *arguments)
            except Exception as error:
                print(f"{name}: not exported: {error!r}"[:400], flush=True)
                continue
            # Each row twice: the frame is twice as high as the input, into which it is stretched without loss.
            pictures = [random_picture(seed, size) for seed in range(1, 4)]
            properties = next((it for end, it in PROPERTIES.items() if name.endswith(end)), ())
            ours = run(path, [picture.repeat(repeat, axis=0) for picture in pictures], *properties)
            if isinstance(ours, str):
                print(f"{name}: {ours}", flush=True)
                continue
            counts = []
            for picture, found in zip(pictures, ours, strict=True):
                found[:, [3, 5]] /= repeat
                expected = theirs(picture)
                counts.append([len(expected), *differences(found, expected)])
            total, left, missing = np.sum(counts, axis=0)
            print(f"{name}: {total} objects, {left} of ours and {missing} of theirs without a counterpart", flush=True)


main()
