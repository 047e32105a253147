"""A model that many clients share: requests that wait are computed together."""

import asyncio
import concurrent.futures
import functools
from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

import numpy as np
import tensorflow as tf

from t2t_lite.serving.rest import Columns, count_texts

Outputs = dict[str, np.ndarray]
# Their outputs are as long as the longest of the texts computed together.
UNBATCHED = ("translate_aligned",)


class TooBusyError(Exception):
    """More texts are waiting than may."""


class _Waiting(NamedTuple):
    """A request, and where its outputs go."""

    signature: str
    columns: Columns
    outputs: asyncio.Future


class BatchedModel:
    """The signatures of a model, computed by one thread for all clients.

    Requests are taken in the order in which they came, those that wait for the
    same signature with the first of them. Canceled ones are left out.

    Args:
        signatures: tf.functions by name, which take string [B] by name, and
            return a dict of tensors [B, ...].
        max_batch_texts: the most texts that are computed together, except for a
            request that has more.
        most_waiting: the most texts that may wait.
    """

    def __init__(
        self,
        signatures: Mapping[str, Callable],
        *,
        max_batch_texts: int = 1024,
        most_waiting: int = 8192,
    ):
        self._signatures = signatures
        self._max_batch_texts = max_batch_texts
        self._most_waiting = most_waiting
        self._waiting: list[_Waiting] = []
        self._thread = concurrent.futures.ThreadPoolExecutor(1)
        self._work: asyncio.Task | None = None
        self.is_computing = False  # whether the thread is at work

    async def predict(self, signature: str, columns: Columns) -> Outputs:
        """Returns the outputs of a signature, arrays [B, ...] by name.

        Args:
            signature: its name.
            columns: B texts in UTF-8 for each of its inputs, by name.

        Raises:
            TooBusyError: too many texts are waiting.
        """
        loop = asyncio.get_running_loop()
        asked = _Waiting(signature, columns, loop.create_future())
        self._waiting = [w for w in self._waiting if not w.outputs.done()]
        num_texts = sum(
            count_texts(each.columns) for each in (*self._waiting, asked)
        )
        if self._waiting and num_texts > self._most_waiting:
            raise TooBusyError
        self._waiting.append(asked)
        if self._work is None:
            self._work = asyncio.create_task(self._compute_all())
        return await asked.outputs

    async def run(self, function: Callable[[], Any]) -> Any:
        """Returns what a function returns, called when the thread is free."""
        loop = asyncio.get_running_loop()
        return await loop.run_in_executor(self._thread, self._note, function)

    def _note(self, function: Callable[[], Any]) -> Any:
        self.is_computing = True
        try:
            return function()
        finally:
            self.is_computing = False

    async def _compute_all(self) -> None:
        """Computes what is waiting, until nothing is."""
        while taken := self._take():
            try:
                results = await self.run(
                    functools.partial(self._compute, taken)
                )
            except Exception as error:
                for each in taken:
                    if not each.outputs.done():
                        each.outputs.set_exception(error)
            else:
                for each, result in zip(taken, results, strict=True):
                    if not each.outputs.done():
                        each.outputs.set_result(result)
        self._work = None

    def _take(self) -> list[_Waiting]:
        """Returns the requests to compute next, none if none are waiting."""
        waiting = [each for each in self._waiting if not each.outputs.done()]
        taken, self._waiting, num_texts = [], [], 0
        for each in waiting:
            with_it = num_texts + count_texts(each.columns)
            fits = with_it <= self._max_batch_texts
            is_like = not taken or (
                fits
                and each.signature == taken[0].signature
                and each.signature not in UNBATCHED
            )
            if is_like:
                taken.append(each)
                num_texts = with_it
            else:
                self._waiting.append(each)
        return taken

    def _compute(self, taken: list[_Waiting]) -> list[Outputs]:
        """Returns the outputs of requests for the same signature."""
        function = self._signatures[taken[0].signature]
        columns = {
            name: tf.constant(
                [text for each in taken for text in each.columns[name]],
                tf.string,
            )
            for name in taken[0].columns
        }
        outputs = {name: t.numpy() for name, t in function(**columns).items()}
        ends = np.cumsum([count_texts(each.columns) for each in taken])
        parts = {name: np.split(a, ends[:-1]) for name, a in outputs.items()}
        return [
            {name: parts[name][n] for name in parts} for n in range(len(taken))
        ]
