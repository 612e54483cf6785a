# SPDX-License-Identifier: MIT OR Apache-2.0
"""decode, which keeps a Decoder for each combination of arguments, and BatchDecoder for Ray."""

from __future__ import annotations

import threading
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, Literal, overload

from ._core import Decoder, Detections

if TYPE_CHECKING:
    from numpy.typing import NDArray
    from typing_extensions import Unpack

    from ._core import Arrays, ArrayT, NumpyDetections, Regions, Settings, Stream

_MAX_DECODERS = 16
_of_thread = threading.local()


def _hashable(value: Any) -> Any:
    if isinstance(value, Mapping):
        return tuple(sorted((key, _hashable(item)) for key, item in value.items()))
    if isinstance(value, (list, tuple)):
        return tuple(_hashable(item) for item in value)
    return value


@overload
def decode(
    outputs: NDArray[Any] | Arrays[NDArray[Any]],
    decoder: str | None = None,
    *,
    regions: Regions | None = None,
    stream: Stream | None = None,
    results: Literal["device", "host"] | None = None,
    **settings: Unpack[Settings],
) -> NumpyDetections: ...


@overload
def decode(
    outputs: object,
    decoder: str | None = None,
    *,
    regions: Regions | None = None,
    stream: Stream | None = None,
    results: Literal["host"],
    **settings: Unpack[Settings],
) -> Detections[Any, Any]: ...


@overload
def decode(
    outputs: Arrays[ArrayT],
    decoder: str | None = None,
    *,
    regions: Regions | None = None,
    stream: Stream | None = None,
    results: Literal["device"] | None = None,
    **settings: Unpack[Settings],
) -> Detections[ArrayT, ArrayT]: ...


@overload
def decode(
    outputs: ArrayT,
    decoder: str | None = None,
    *,
    regions: Regions | None = None,
    stream: Stream | None = None,
    results: Literal["device"] | None = None,
    **settings: Unpack[Settings],
) -> Detections[ArrayT, ArrayT]: ...


def decode(
    outputs: Any,
    decoder: str | None = None,
    *,
    regions: Any = None,
    stream: Any = None,
    results: Any = None,
    **settings: Any,
) -> Any:
    """Decodes the outputs of a model for a batch of images and suppresses duplicates.

    The settings are those of Decoder. The decoders of the last 16 combinations of settings are kept for each thread.
    """
    decoders: dict[Any, Decoder] | None = getattr(_of_thread, "decoders", None)
    if decoders is None:
        decoders = _of_thread.decoders = {}
    key = (decoder, tuple((name, _hashable(value)) for name, value in settings.items()))
    try:
        known = decoders.get(key)
    except TypeError:
        # A value that is no name and no number: the constructor's error names it, or it is used once.
        return Decoder(decoder, **settings)(outputs, regions=regions, stream=stream, results=results)
    if known is None:
        known = Decoder(decoder, **settings)
        if len(decoders) >= _MAX_DECODERS:
            del decoders[next(iter(decoders))]
        decoders[key] = known
    return known(outputs, regions=regions, stream=stream, results=results)


class BatchDecoder:
    """A class for Ray Data's map_batches: decodes some columns of a batch, and passes on the others.

        dataset.map_batches(BatchDecoder, fn_constructor_kwargs={"columns": ["output0"], "decoder": "yolov8"})

    columns: the columns that have the model's outputs, which are replaced by boxes, scores, classes, anchors and counts
    (see Detections), and by keypoints and oriented_boxes where the model gives them. The other arguments are those of
    Decoder.
    """

    def __init__(self, columns: Sequence[str], decoder: str | None = None, **settings: Unpack[Settings]) -> None:
        if isinstance(columns, str):
            columns = [columns]
        self._columns = list(columns)
        self._decoder = Decoder(decoder, **settings)

    def __call__(self, batch: Mapping[str, Any]) -> dict[str, Any]:
        missing = [name for name in self._columns if name not in batch]
        if missing:
            raise KeyError(f"columns: expected {missing} in the batch, which has {list(batch)}")
        found = self._decoder({name: batch[name] for name in self._columns}, results="host")
        result = {name: column for name, column in batch.items() if name not in self._columns}
        for name in ("boxes", "scores", "classes", "anchors", "counts", "keypoints", "oriented_boxes"):
            array = getattr(found, name)
            if array is not None:
                result[name] = array
        return result
