# SPDX-License-Identifier: MIT OR Apache-2.0
# The types of the extension module. Its documentation has the rest; tests/test_types.py compares the signatures.
from collections.abc import Mapping, Sequence
from typing import Any, Literal, TypeAlias, TypeVar

__version__: str

# An array of NumPy, PyTorch, CuPy or JAX, or an object with __dlpack__, __cuda_array_interface__ or __array_interface__.
ArrayT = TypeVar("ArrayT")
Stream: TypeAlias = Any
Overlap: TypeAlias = Literal["iou", "smaller", "representative", "diou", "prob-iou"]
Method: TypeAlias = Literal[
    "greedy",
    "map-reduce",
    "none",
    "merge",
    "merge-transitive",
    "weighted-fusion",
    "weighted-average",
    "soft-linear",
    "soft-gaussian",
    "matrix-linear",
    "matrix-gaussian",
    "adaptive",
    "feature",
]
Outputs: TypeAlias = Any | Sequence[Any] | Mapping[str, Any]
Quantization: TypeAlias = tuple[float, int]
# A number of pixels for width and height, or both; None for no limit.
Sides: TypeAlias = float | tuple[float, float] | None

# InputError if a score is NaN or a side is longer than 10^9, as in the other three; torchvision takes both.
def nms(
    boxes: ArrayT,
    scores: Any,
    iou_threshold: float,
    *,
    method: Literal["greedy", "map-reduce"] | None = None,
    overlap: Overlap | None = None,
    max_detections: int = 0,
    stream: Stream | None = None,
) -> ArrayT: ...
def batched_nms(
    boxes: ArrayT,
    scores: Any,
    idxs: Any,
    iou_threshold: float,
    *,
    method: Literal["greedy", "map-reduce"] | None = None,
    overlap: Overlap | None = None,
    max_detections: int = 0,
    stream: Stream | None = None,
) -> ArrayT: ...
def nms_rotated(
    boxes: ArrayT,
    scores: Any,
    iou_threshold: float,
    *,
    method: Literal["greedy", "map-reduce"] | None = None,
    overlap: Overlap | None = None,
    max_detections: int = 0,
    stream: Stream | None = None,
) -> ArrayT: ...
def batched_nms_rotated(
    boxes: ArrayT,
    scores: Any,
    idxs: Any,
    iou_threshold: float,
    *,
    method: Literal["greedy", "map-reduce"] | None = None,
    overlap: Overlap | None = None,
    max_detections: int = 0,
    stream: Stream | None = None,
) -> ArrayT: ...
def suppress(
    boxes: ArrayT,
    scores: Any,
    classes: Any | None = None,
    *,
    method: Method | None = None,
    overlap: Overlap | None = None,
    iou_threshold: float = 0.5,
    score_threshold: float | None = None,
    threshold_inclusive: bool = False,
    sigma: float = 0.5,
    class_agnostic: bool = False,
    lose_released: bool = False,
    max_detections: int = 0,
    densities: Any | None = None,
    embeddings: Any | None = None,
    embedding_distance: float = 1.0,
    embedding_iou_threshold: float = 0.9,
) -> tuple[ArrayT, ArrayT, ArrayT | None, ArrayT, ArrayT, ArrayT]: ...
def decoders() -> list[str]: ...

class Decoder:
    def __new__(
        cls,
        decoder: str | None = None,
        *,
        layout: str | None = None,
        score_threshold: float | Sequence[float] | None = None,
        iou_threshold: float = 0.45,
        threshold_inclusive: bool = False,
        pixel_offset: float = 0.0,
        model_size: tuple[float, float] | None = None,
        visible: tuple[float, float, float, float] | None = None,
        frame_size: tuple[int, int] | None = None,
        letterbox: Literal["none", "center", "top-left"] | None = None,
        max_detections: int = 1000,
        max_candidates: int = 0,
        min_size: Sides = None,
        max_size: Sides = None,
        class_iou_thresholds: dict[int, float] | None = None,
        class_max_detections: dict[int, int] | None = None,
        class_sizes: dict[int, tuple[Sides, Sides]] | None = None,
        method: Method | None = None,
        overlap: Overlap | None = None,
        class_agnostic: bool = False,
        multi_label: bool = False,
        masks: bool = True,
        mask_size: Literal["prototypes", "frame"] | None = None,
        box_format: Literal["corners", "center", "square", "distances"] | None = None,
        coordinates: Literal["auto", "pixels", "normalized"] | None = None,
        num_classes: int = 0,
        score_activation: Literal["none", "sigmoid", "softmax"] | None = None,
        keypoint_shape: tuple[int, int] | None = None,
        quantization: Quantization | Mapping[str, Quantization] | None = None,
        sigma: float = 0.5,
        lose_released: bool = False,
        region_edges: Literal["keep", "drop", "lower"] | None = None,
        edge_margin: float = 5.0,
        edge_score: float = 0.6,
        embedding_distance: float = 1.0,
        embedding_iou_threshold: float = 0.9,
        background: Literal["none", "first", "last"] | None = None,
        channels: Literal["auto", "first", "last"] | None = None,
    ) -> Decoder: ...
    def __call__(
        self,
        outputs: Outputs,
        *,
        stream: Stream | None = None,
        results: Literal["device", "host"] | None = None,
    ) -> Detections: ...
    def finish(self) -> None: ...

class Detections:
    @property
    def boxes(self) -> Any: ...
    @property
    def scores(self) -> Any: ...
    @property
    def classes(self) -> Any: ...
    @property
    def anchors(self) -> Any: ...
    @property
    def counts(self) -> Any: ...
    @property
    def keypoints(self) -> Any | None: ...
    @property
    def oriented_boxes(self) -> Any | None: ...
    @property
    def mask_areas(self) -> Any | None: ...
    @property
    def columns(self) -> Any | None: ...
    @property
    def bytes_uploaded(self) -> int | None: ...
    @property
    def engine(self) -> str: ...
    def mask(self, image: int, detection: int) -> Any | None: ...

class Array:
    @property
    def shape(self) -> tuple[int, ...]: ...
    @property
    def dtype(self) -> str: ...
    @property
    def ndim(self) -> int: ...
    @property
    def __array_interface__(self) -> dict[str, Any]: ...
    @property
    def __cuda_array_interface__(self) -> dict[str, Any]: ...
    def __len__(self) -> int: ...
    def __dlpack__(
        self,
        *,
        stream: int | None = None,
        max_version: tuple[int, int] | None = None,
        dl_device: tuple[int, int] | None = None,
        copy: bool | None = None,
    ) -> Any: ...
    def __dlpack_device__(self) -> tuple[int, int]: ...

# For nmsfilter.gst.
def hold(
    array: Any, name: str, stream: Stream | None = None
) -> tuple[int, int, str, tuple[int, ...], int, int, int, int]: ...
def release_held(argument: int) -> None: ...
def gather(addresses: list[int], lengths: list[int]) -> bytes: ...

# For python -m nmsfilter.
def test_gpu(ordinal: int) -> str: ...
