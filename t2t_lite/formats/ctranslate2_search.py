"""CTranslate2's search, called as our own searches are."""

import pathlib
from collections.abc import Iterable, Iterator, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from absl import logging

from t2t_lite import hardware
from t2t_lite.decoding import shapes, steering
from t2t_lite.decoding.beam_search import Hypotheses
from t2t_lite.decoding.search_options import SearchOptions
from t2t_lite.errors import InputError, require
from t2t_lite.formats import ctranslate2
from t2t_lite.hparams import HParams
from t2t_lite.text.vocabulary import Vocabulary
from t2t_lite.token_ids import EOS

if TYPE_CHECKING:
    import tensorflow as tf


class Workers(NamedTuple):
    """What computes: threads of the CPU, or GPUs."""

    device: str  # "cpu" or "cuda"
    device_indices: list[int]
    inter_threads: int  # batches side by side
    intra_threads: int  # of each batch
    compute_type: str

    def load(self, folder: pathlib.Path) -> Any:
        """Returns the ctranslate2.Translator of a folder."""
        try:
            translator = ctranslate2.load_library().Translator(
                str(folder),
                device=self.device,
                device_index=self.device_indices,
                compute_type=self.compute_type,
                inter_threads=self.inter_threads,
                intra_threads=self.intra_threads,
            )
        except (RuntimeError, ValueError) as error:
            raise InputError(
                f"CTranslate2 cannot load {folder}: {error}"
            ) from None
        is_int8 = self.device == "cpu" and "int8" in translator.compute_type
        if is_int8 and hardware.lacks_vnni():
            logging.warning(
                "This CPU has no instructions for int8 products: float32 may "
                "be faster."
            )
        return translator


def find_workers(
    devices: str | int = 1, quantization: str | None = None
) -> Workers:
    """Returns the Workers of this machine: its GPUs, or else its CPU.

    Each core of a CPU searches a batch of its own, which is faster than batches
    that share all cores.

    Args:
        devices: "all" GPUs of the machine (without any, its CPU), or how many.
        quantization: what the weights are multiplied in; None for what they
            are stored in.

    Raises:
        InputError: there are fewer devices, or they cannot compute in such
            numbers.
    """
    library = ctranslate2.load_library()
    num_gpus = library.get_cuda_device_count()
    most = max(1, num_gpus)
    count = int(devices) if str(devices).isdecimal() else 0
    require(
        f"devices must be all, or from 1 to {most} on this machine",
        devices == "all" or 0 < count <= most,
        devices=devices,
    )
    device = "cuda" if num_gpus else "cpu"
    known = library.get_supported_compute_types(device)
    require(
        f"quantization must be None or one that this machine's {device} "
        f"supports: {', '.join(sorted(known))}",
        quantization is None or quantization in known,
        quantization=quantization,
    )
    indices = [*range(most if devices == "all" else count)]
    cores = hardware.num_cores()
    side_by_side = 1 if num_gpus else hardware.cpu_parts(cores)
    return Workers(
        device=device,
        device_indices=indices,
        inter_threads=side_by_side,
        intra_threads=max(1, cores // side_by_side),
        # "default" is what the weights are stored in.
        compute_type=quantization or "default",
    )


class _Hypothesis(NamedTuple):
    """A hypothesis."""

    ids: list[int]  # with EOS, if it has ended
    log_prob: float

    @property
    def has_ended(self) -> bool:
        """Whether EOS is its last token."""
        return self.ids[-1:] == [EOS]


class CTranslate2Search:
    """Translates any number of id sequences, as `ids_translator` does.

    Args:
        library: ctranslate2.Translator.
        vocabulary: Vocabulary, of both sides.
        hparams: HParams of the model.
        options: SearchOptions.
    """

    def __init__(
        self,
        library: Any,
        vocabulary: Vocabulary,
        hparams: HParams,
        options: SearchOptions,
    ):
        self._library, self._options = library, options
        self._source_names = ctranslate2.token_names(vocabulary)
        targets = ctranslate2.token_names(vocabulary.target)
        self._target_ids = {name: n for n, name in enumerate(targets, EOS)}
        steering.piece_ids(options.suppress_pieces, vocabulary.target)
        self._target_vocabulary = vocabulary.target
        self._target_names = targets
        self._most = ctranslate2.num_positions(hparams)
        whole = shapes.capacity(
            hardware.find_hardware(), options.beam_width, options.tokens_at_once
        )
        self._tokens_per_batch = max(1, whole.tokens // whole.num_parts)
        # One translation without a penalty needs no others to be ranked with.
        is_plain = options.nbest == 1 and options.length_penalty == 0
        self._num_hypotheses = 1 if is_plain else options.beam_width

    def __call__(self, ids: "tf.RaggedTensor") -> Hypotheses:
        """Returns the `nbest` Hypotheses of each sequence, NumPy arrays.

        Args:
            ids: int32 RaggedTensor [N, (length)], each with EOS at its end. A
                sequence of nothing else gets no ids, and the scores 0, -inf,
                -inf, ...
        """
        return self._hypotheses(self.search(ids.to_list()))

    def _hypotheses(self, found: list[list["_Hypothesis"]]) -> Hypotheses:
        """Returns what was found as arrays."""
        N, W = len(found), self._options.nbest
        T = max((len(f.ids) for each in found for f in each), default=0)
        ids_NWT = np.zeros([N, W, T], np.int32)
        scores_NW = np.full([N, W], -np.inf, np.float32)
        for n, hypotheses in enumerate(found):
            for w, hypothesis in enumerate(hypotheses):
                ids_NWT[n, w, : len(hypothesis.ids)] = hypothesis.ids
                scores_NW[n, w] = self._score(hypothesis)
        return Hypotheses(ids_NWT, scores_NW)

    def translate_prefixed(
        self,
        ids: "tf.RaggedTensor",
        prefixes: Sequence[str],
        is_complete: Sequence[bool],
    ) -> Hypotheses:
        """Returns the Hypotheses of sequences that begin with prefixes.

        The vocabulary tokenizes a prefix by itself, so a word that it cuts
        continues with a new token.

        Args:
            ids: as for a call.
            prefixes: str, one for each sequence.
            is_complete: whether each prefix is all of the translation.
        """
        sources = ids.to_list()
        prefix_ids = self._target_vocabulary.encode(
            [p.rstrip() for p in prefixes]
        )
        scores = self._scores(sources, prefix_ids)
        found = self.search(
            # What is already known needs no search.
            [
                [] if ends else source_ids
                for source_ids, ends in zip(sources, is_complete, strict=True)
            ],
            [each[:-1] for each in prefix_ids],
        )
        for n, log_probs in enumerate(scores):
            if is_complete[n]:
                found[n] = [_Hypothesis(prefix_ids[n], sum(log_probs))]
            elif not self._options.steering:
                # The library leaves the prefix out of a score.
                prefix_log_prob = sum(log_probs[:-1])
                found[n] = [
                    h._replace(log_prob=h.log_prob + prefix_log_prob)
                    for h in found[n]
                ]
        return self._hypotheses(found)

    def _scores(
        self, sources: list[list[int]], targets: list[list[int]]
    ) -> list[list[float]]:
        """Returns the log probability of each token of targets, with EOS.

        Args:
            sources: lists of ids, each with EOS at its end.
            targets: lists of ids, each with EOS at its end.
        """
        found = self._library.score_batch(
            [self._named(self._source_names, ids) for ids in sources],
            [self._named(self._target_names, ids) for ids in targets],
            max_batch_size=self._tokens_per_batch,
            batch_type="tokens",
            max_input_length=0,
        )
        return [each.log_probs for each in found]

    def _named(self, names: list[str], ids: list[int]) -> list[str]:
        """Returns the library's names of ids, without EOS."""
        return [names[i - EOS] for i in ids[:-1]]

    def search(
        self,
        sources: list[list[int]],
        prefix_ids: list[list[int]] | None = None,
    ) -> list[list[_Hypothesis]]:
        """Returns the best hypotheses of each source, best first.

        CTranslate2 takes one maximum length for a whole batch. It cuts off only
        what is about as long as the longest sources allow, and changes nothing
        for a sentence all of whose hypotheses end within its own limit. The few
        others are searched again, together with those of the same limit.

        Args:
            sources: lists of ids, each with EOS at its end.
            prefix_ids: the ids that each source's hypotheses begin with, which
                their scores leave out; None for none.
        """
        prefix_ids = prefix_ids or [[]] * len(sources)
        found = [[_Hypothesis([], 0.0)] for _ in sources]
        rows = [n for n, ids in enumerate(sources) if ids not in ([], [EOS])]
        for n, hypotheses in self._run(
            sources, prefix_ids, self._batches(sources, rows)
        ):
            found[n] = hypotheses
        again = [n for n in rows if not self._is_final(found[n], sources[n])]
        lengths = sorted({len(sources[n]) for n in again})
        batches = [
            batch
            for length in lengths
            for batch in self._batches(
                sources, [n for n in again if len(sources[n]) == length]
            )
        ]
        for n, hypotheses in self._run(
            sources, prefix_ids, batches, to_the_end=True
        ):
            found[n] = hypotheses
        if self._options.steering:
            found = self._rescored(sources, found)
        return [each[: self._options.nbest] for each in found]

    def _rescored(
        self, sources: list[list[int]], found: list[list[_Hypothesis]]
    ) -> list[list[_Hypothesis]]:
        """Returns hypotheses with the model's scores, best first.

        When the library's search is steered, it spreads the probability of what
        it leaves out over the rest.
        """
        pairs = [
            (n, hypothesis)
            for n, hypotheses in enumerate(found)
            for hypothesis in hypotheses
            if hypothesis.has_ended
        ]
        scores = self._scores(
            [sources[n] for n, _ in pairs], [h.ids for _, h in pairs]
        )
        rescored = [[h for h in each if not h.has_ended] for each in found]
        for (n, hypothesis), log_probs in zip(pairs, scores, strict=True):
            rescored[n].append(hypothesis._replace(log_prob=sum(log_probs)))
        return [sorted(each, key=self._rank) for each in rescored]

    def _rank(self, hypothesis: _Hypothesis) -> tuple[bool, float]:
        """Returns a sort key; hypotheses that have not ended come last."""
        return not hypothesis.has_ended, -self._score(hypothesis)

    def _limit(self, source: list[int]) -> int:
        """Returns how many tokens a source's translation may have, with EOS."""
        return min(len(source) + self._options.max_extra_length, self._most)

    def _is_final(
        self, hypotheses: list[_Hypothesis], source: list[int]
    ) -> bool:
        limit = self._limit(source)
        return all(h.has_ended and len(h.ids) <= limit for h in hypotheses)

    def _score(self, hypothesis: _Hypothesis) -> float:
        """Returns log probability / length penalty; section 6.1."""
        alpha = self._options.length_penalty
        return hypothesis.log_prob / ((5 + len(hypothesis.ids)) / 6) ** alpha

    def _batches(
        self, sources: list[list[int]], rows: list[int]
    ) -> Iterator[list[int]]:
        """Yields the rows of each batch, those of long sources first."""
        num_tokens = sum(len(sources[n]) for n in rows)
        # No worker should have to wait for another.
        share = -(-num_tokens // self._library.num_translators)
        most_tokens = min(self._tokens_per_batch, share)
        batch = []
        for n in sorted(rows, key=lambda n: -len(sources[n])):
            width = len(sources[batch[0]]) if batch else 0
            if batch and width * (len(batch) + 1) > most_tokens:
                yield batch
                batch = []
            batch.append(n)
        if batch:
            yield batch

    def _run(
        self,
        sources: list[list[int]],
        prefix_ids: list[list[int]],
        batches: Iterable[list[int]],
        to_the_end: bool = False,
    ) -> Iterator[tuple[int, list[_Hypothesis]]]:
        """Yields (row, hypotheses, best first) of each source in batches.

        Args:
            sources: lists of ids.
            prefix_ids: as for `search`.
            batches: lists of rows, each searched at once.
            to_the_end: whether searches continue to their maximum length and
                return all that has ended by then.
        """
        started = [
            (
                batch,
                self._start(
                    [sources[n] for n in batch],
                    [prefix_ids[n] for n in batch],
                    to_the_end,
                ),
            )
            for batch in batches
        ]
        for batch, results in started:
            for n, result in zip(batch, results, strict=True):
                yield n, self._ranked(result.result())

    def _start(
        self,
        sources: list[list[int]],
        prefix_ids: list[list[int]],
        to_the_end: bool,
    ) -> list[Any]:
        """Returns the pending results of a batch."""
        limit = max(map(self._limit, sources))
        beam_width = self._options.beam_width
        patience = limit + 1 if to_the_end and beam_width > 1 else 1
        options = self._options
        names = self._target_names
        return self._library.translate_batch(
            [self._named(self._source_names, ids) for ids in sources],
            target_prefix=[[names[i - EOS] for i in ids] for ids in prefix_ids],
            asynchronous=True,
            beam_size=beam_width,
            patience=patience,
            num_hypotheses=(
                patience * beam_width if patience > 1 else self._num_hypotheses
            ),
            length_penalty=0,
            min_decoding_length=min(options.min_length, limit - 1),
            no_repeat_ngram_size=options.no_repeat_ngram_size,
            suppress_sequences=[[p] for p in options.suppress_pieces] or None,
            max_decoding_length=limit,
            max_input_length=0,
            return_scores=True,
            return_end_token=True,
        )

    def _ranked(self, result: Any) -> list[_Hypothesis]:
        """Returns what was found, best first; what has not ended comes last."""
        found = [
            _Hypothesis([self._target_ids[token] for token in tokens], score)
            for tokens, score in zip(
                result.hypotheses, result.scores, strict=True
            )
        ]
        return sorted(found, key=self._rank)
