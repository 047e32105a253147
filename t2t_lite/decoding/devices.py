"""Searches on several devices, which take their batches from one queue.

Each device has the weights, a graph of its own, and one batch at a time. The
batches are those of a single device, so the results are the same, too.
"""

import contextlib
import queue
from collections.abc import Callable, Iterable, Sequence
from concurrent import futures
from typing import NamedTuple

import numpy as np
import tensorflow as tf

from t2t_lite.decoding.beam_search import Hypotheses
from t2t_lite.decoding.ensemble import Ensemble
from t2t_lite.errors import require
from t2t_lite.model.transformer import Transformer


class Replica(NamedTuple):
    """A model whose weights are on a device."""

    model: Transformer | Ensemble
    device: str


def find_devices(devices: str | int = "all") -> list[str]:
    """Returns the names of this machine's devices that are to search.

    They are GPUs if there are any, else CPUs.

    Args:
        devices: "all", or how many.

    Raises:
        InputError: there are not that many.
    """
    gpus = tf.config.list_logical_devices("GPU")
    names = [d.name for d in gpus or tf.config.list_logical_devices("CPU")]
    if devices == "all":
        return names
    count = int(devices) if str(devices).isdecimal() else 0
    require(
        f"devices must be all, or from 1 to {len(names)} on this machine",
        0 < count <= len(names),
        devices=devices,
    )
    return names[:count]


def make_replicas(
    model: Transformer | Ensemble, devices: Sequence[str] = ()
) -> list[Replica]:
    """Returns the Replicas of a model that search; none if it searches alone.

    Args:
        model: Transformer, or an Ensemble. The devices of a MirroredStrategy
            that it was made under have its weights already, so those are used.
        devices: names; all but the first get the weights as they are now.
    """
    strategy = _strategy(model)
    if strategy is not None:
        devices = strategy.extended.worker_devices
    if len(devices) < 2:
        return []
    models = [model] * len(devices)
    if strategy is None:
        models[1:] = [_copy(model, device) for device in devices[1:]]
    return list(map(Replica, models, devices))


def _strategy(
    model: Transformer | Ensemble,
) -> tf.distribute.Strategy | None:
    """Returns the strategy that mirrors a model's weights, if one does."""
    value = model.weights[0].value
    is_mirrored = isinstance(value, tf.distribute.DistributedValues)
    return value.distribute_strategy if is_mirrored else None


def _copy(model: Transformer | Ensemble, device: str) -> Transformer | Ensemble:
    if isinstance(model, Ensemble):
        return Ensemble([_copy(each, device) for each in model.models])
    with tf.device(device):
        copy = Transformer.from_config(model.get_config())
        copy.build()
        for weight, value in zip(copy.weights, model.weights, strict=True):
            weight.assign(value.value)
        if model.search_precision == "int8":
            copy.search_in_int8()
    return copy


def trace_on(replica: Replica, translate: Callable) -> Callable:
    """Returns the graph of a function, computed on a replica's device.

    Args:
        replica: Replica.
        translate: tf.function of ids, with the replica's model.
    """

    def translate_there(*ids: tf.Tensor | tf.RaggedTensor) -> Hypotheses:
        with tf.device(replica.device):
            return translate(*ids)

    strategy = _strategy(replica.model)
    # Only in its scope is a mirrored weight that of the device.
    with strategy.scope() if strategy else contextlib.nullcontext():
        return tf.function(
            translate_there,
            input_signature=translate.input_signature,
            autograph=False,
        ).get_concrete_function()


class DividedSearch:
    """A function of token ids that several devices compute, batch by batch.

    Args:
        searches: functions from an int32 RaggedTensor [N, (length)], and maybe
            other tensors [N, ...], to Hypotheses; one for each device.
        batches: a function from the first tensor's int lengths_N to the rows of
            each batch, as arrays; rows without ids are left out.
    """

    def __init__(
        self,
        searches: Sequence[Callable],
        batches: Callable[[np.ndarray], Iterable[np.ndarray]],
    ):
        self._searches, self._batches = searches, batches
        self._free: queue.SimpleQueue = queue.SimpleQueue()
        for each in searches:
            self._free.put(each)

    def __call__(self, *ids: tf.Tensor | tf.RaggedTensor) -> Hypotheses:
        """Returns the Hypotheses of all sequences; it is thread-safe."""
        if tf.inside_function():  # A graph starts no threads.
            return self._searches[0](*ids)
        batches = list(self._batches(ids[0].row_lengths().numpy()))
        if not batches:
            return self._search(ids)
        with futures.ThreadPoolExecutor(len(self._searches)) as pool:
            parts = pool.map(lambda rows_R: self._search(ids, rows_R), batches)
            return _in_their_rows(list(parts), batches, ids[0].shape[0])

    def _search(
        self,
        ids: Sequence[tf.Tensor | tf.RaggedTensor],
        rows_R: np.ndarray | None = None,
    ) -> Hypotheses:
        """Returns what the next free device finds, as arrays."""
        search = self._free.get()
        try:
            if rows_R is not None:
                with tf.device("CPU:0"):
                    ids = [tf.gather(each, rows_R) for each in ids]
            # As arrays: the device is free only once all is computed.
            return Hypotheses(*map(np.asarray, search(*ids)))
        finally:
            self._free.put(search)


def _in_their_rows(
    parts: Sequence[Hypotheses], batches: Sequence[np.ndarray], N: int
) -> Hypotheses:
    """Returns the Hypotheses of N sequences, empty ones for those left out."""
    W = parts[0].ids_BWT.shape[1]
    T = max(part.ids_BWT.shape[2] for part in parts)
    ids_NWT = np.zeros([N, W, T], np.int32)
    scores_NW = np.full([N, W], -np.inf, np.float32)
    scores_NW[:, 0] = 0.0
    for rows_R, (ids_RWT, scores_RW) in zip(batches, parts, strict=True):
        ids_NWT[rows_R, :, : ids_RWT.shape[2]] = ids_RWT
        scores_NW[rows_R] = scores_RW
    return Hypotheses(ids_NWT, scores_NW)
