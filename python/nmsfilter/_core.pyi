# SPDX-License-Identifier: MIT OR Apache-2.0
# The types of the extension module. Its documentation has the rest; tests/test_types.py compares the signatures.
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Generic, Literal, Protocol, TypeAlias, TypedDict, TypeVar, overload

from numpy import float32, int32, int64
from numpy.typing import NDArray
from typing_extensions import Unpack

from ._detections import Floats, ImageDetections, Integers
from ._suppress import MergedBoxes

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
Arrays: TypeAlias = list[ArrayT] | tuple[ArrayT, ...] | Mapping[str, ArrayT]
NumpyDetections: TypeAlias = "Detections[NDArray[float32], NDArray[int32]]"
Quantization: TypeAlias = tuple[float, int]
# Left, upper, right and lower edge of each.
Regions: TypeAlias = Sequence[tuple[int, int, int, int]]
# A number of pixels for width and height, or both; None for no limit.
Sides: TypeAlias = float | tuple[float, float] | None

class BoxSettings(TypedDict, total=False):
    method: Literal["greedy", "map-reduce"] | None
    overlap: Overlap | None
    max_detections: int
    stream: Stream | None

# InputError if a score is NaN or a side is longer than 10^9; torchvision takes both.
class Nms(Protocol):
    @overload
    def __call__(
        self, boxes: NDArray[Any], scores: Any, iou_threshold: float, **settings: Unpack[BoxSettings]
    ) -> NDArray[int64]: ...
    @overload
    def __call__(
        self, boxes: ArrayT, scores: Any, iou_threshold: float, **settings: Unpack[BoxSettings]
    ) -> ArrayT: ...

class BatchedNms(Protocol):
    @overload
    def __call__(
        self, boxes: NDArray[Any], scores: Any, idxs: Any, iou_threshold: float, **settings: Unpack[BoxSettings]
    ) -> NDArray[int64]: ...
    @overload
    def __call__(
        self, boxes: ArrayT, scores: Any, idxs: Any, iou_threshold: float, **settings: Unpack[BoxSettings]
    ) -> ArrayT: ...

nms: Nms
batched_nms: BatchedNms
nms_rotated: Nms
batched_nms_rotated: BatchedNms

class SuppressSettings(TypedDict, total=False):
    method: Method | None
    overlap: Overlap | None
    iou_threshold: float
    score_threshold: float | None
    threshold_inclusive: bool
    sigma: float
    class_agnostic: bool
    lose_released: bool
    max_detections: int
    densities: Any | None
    embeddings: Any | None
    embedding_distance: float
    embedding_iou_threshold: float

@overload
def suppress(
    boxes: NDArray[Any], scores: Any, classes: None = None, **settings: Unpack[SuppressSettings]
) -> MergedBoxes[NDArray[float32], NDArray[int64], None]: ...
@overload
def suppress(
    boxes: NDArray[Any], scores: Any, classes: object, **settings: Unpack[SuppressSettings]
) -> MergedBoxes[NDArray[float32], NDArray[int64], NDArray[int64]]: ...
@overload
def suppress(
    boxes: ArrayT, scores: Any, classes: None = None, **settings: Unpack[SuppressSettings]
) -> MergedBoxes[ArrayT, ArrayT, None]: ...
@overload
def suppress(
    boxes: ArrayT, scores: Any, classes: object, **settings: Unpack[SuppressSettings]
) -> MergedBoxes[ArrayT, ArrayT, ArrayT]: ...
def slices(
    frame_size: tuple[int, int], size: tuple[int, int], overlap: float = 0.2
) -> list[tuple[int, int, int, int]]: ...
def decoders() -> list[str]: ...
def describe(
    inputs: list[tuple[str, str, list[int]]],
    outputs: list[tuple[str, str, list[int]]],
    metadata: dict[str, str],
    name: str | None,
) -> dict[str, Any] | None: ...
def output_id(signature: str, form: str, name: str, output: Any) -> str: ...
def fit(frame: tuple[int, int], model: tuple[int, int], letterbox: str) -> tuple[int, int, int, int]: ...

class Settings(TypedDict, total=False):
    layout: str | None
    score_threshold: float | Sequence[float] | None
    iou_threshold: float
    threshold_inclusive: bool
    pixel_offset: float
    model_size: tuple[float, float] | None
    visible: tuple[float, float, float, float] | None
    frame_size: tuple[int, int] | None
    letterbox: Literal["none", "center", "top-left"] | None
    max_detections: int
    max_candidates: int
    min_size: Sides
    max_size: Sides
    class_iou_thresholds: dict[int, float] | None
    class_max_detections: dict[int, int] | None
    class_sizes: dict[int, tuple[Sides, Sides]] | None
    method: Method | None
    overlap: Overlap | None
    class_agnostic: bool
    multi_label: bool | Literal["queries"]
    masks: bool
    mask_size: Literal["prototypes", "frame"] | None
    box_format: Literal["corners", "center", "square", "distances"] | None
    coordinates: Literal["auto", "pixels", "normalized"] | None
    num_classes: int
    score_activation: Literal["none", "sigmoid", "softmax"] | None
    keypoint_shape: tuple[int, int] | None
    quantization: Quantization | Mapping[str, Quantization] | None
    sigma: float
    lose_released: bool
    region_edges: Literal["keep", "drop", "lower"] | None
    edge_margin: float
    edge_score: float
    embedding_distance: float
    embedding_iou_threshold: float
    background: Literal["none", "first", "last"] | None
    channels: Literal["auto", "first", "last"] | None
    labels: Sequence[str] | None

class Decoder:
    def __new__(cls, decoder: str | None = None, **settings: Unpack[Settings]) -> Decoder: ...
    @overload
    def __call__(
        self,
        outputs: NDArray[Any] | Arrays[NDArray[Any]],
        *,
        regions: Regions | None = None,
        stream: Stream | None = None,
        results: Literal["device", "host"] | None = None,
    ) -> NumpyDetections: ...
    # NumPy's arrays if those passed in are on a GPU, else the library's.
    @overload
    def __call__(
        self,
        outputs: object,
        *,
        regions: Regions | None = None,
        stream: Stream | None = None,
        results: Literal["host"],
    ) -> Detections[Any, Any]: ...
    @overload
    def __call__(
        self,
        outputs: Arrays[ArrayT],
        *,
        regions: Regions | None = None,
        stream: Stream | None = None,
        results: Literal["device"] | None = None,
    ) -> Detections[ArrayT, ArrayT]: ...
    @overload
    def __call__(
        self,
        outputs: ArrayT,
        *,
        regions: Regions | None = None,
        stream: Stream | None = None,
        results: Literal["device"] | None = None,
    ) -> Detections[ArrayT, ArrayT]: ...
    def finish(self) -> None: ...

class Detections(Generic[Floats, Integers]):
    @property
    def boxes(self) -> Floats: ...
    @property
    def scores(self) -> Floats: ...
    @property
    def classes(self) -> Integers: ...
    @property
    def anchors(self) -> Integers: ...
    @property
    def counts(self) -> Integers: ...
    @property
    def keypoints(self) -> Floats | None: ...
    @property
    def oriented_boxes(self) -> Floats | None: ...
    @property
    def mask_areas(self) -> Integers | None: ...
    @property
    def columns(self) -> Floats | None: ...
    @property
    def bytes_uploaded(self) -> int | None: ...
    @property
    def engine(self) -> Literal["cpu", "cuda"]: ...
    def mask(self, image: int, detection: int) -> Any | None: ...
    def __len__(self) -> int: ...
    def __iter__(self) -> Iterator[ImageDetections[Floats, Integers]]: ...
    def __getitem__(self, image: int) -> ImageDetections[Floats, Integers]: ...

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
