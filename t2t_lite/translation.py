"""Lines of text to their translations."""

import functools
import itertools
import re
from typing import NamedTuple

import numpy as np
import tensorflow as tf
from absl import logging
from keras import ops

from t2t_lite import beam_search, model_directory, transformer
from t2t_lite.errors import InputError
from t2t_lite.hparams import EOS, PAD

_BATCH_SIZES = (1, 8, 64)
_TOKENS_AT_ONCE = 2048  # Source tokens of one batch, padding included.
_NEVER = -1e9
_AFTER_A_SENTENCE = re.compile(r"(?<=[.!?…])[\"'”»)\]]*\s+|(?<=[。！？])")  # noqa: RUF001


class Translation(NamedTuple):
    """One translation of a line."""

    text: str
    score: float  # log probability in nats / length penalty


class SearchOptions(NamedTuple):
    """How to search; the paper's section 6.1 has the defaults of HParams."""

    beam_width: int
    length_penalty: float
    max_extra_length: int  # tokens beyond those of the source
    nbest: int = 1  # how many translations of each line

    @classmethod
    def of(cls, hparams, **changes):
        """Returns the options of an HParams, with those not None replaced.

        Raises:
            InputError: an option is out of its range.
        """
        chosen = {name: getattr(hparams, name) for name in cls._fields[:3]}
        chosen |= {k: v for k, v in changes.items() if v is not None}
        options = cls(**chosen)
        for name, least in (
            ("beam_width", 1),
            ("length_penalty", 0),
            ("max_extra_length", 0),
            ("nbest", 1),
        ):
            received = getattr(options, name)
            if received < least:
                raise InputError(
                    f"{name} must be at least {least}; received "
                    f"{name}={received}"
                )
        if options.nbest > options.beam_width:
            raise InputError(
                f"nbest must be at most beam_width={options.beam_width}; "
                f"received nbest={options.nbest}"
            )
        return options


def search(model, source_ids, options):
    """Returns the Hypotheses of a batch of sources.

    Each sentence gets at most `max_extra_length` tokens more than it has
    itself.

    Args:
        model: Transformer.
        source_ids: int32 [B, S], EOS at each end, padded with 0.
        options: SearchOptions.
    """
    room = _room(model.hparams, ops.shape(source_ids)[1], options)
    lengths_B = ops.sum(ops.cast(ops.not_equal(source_ids, PAD), "int32"), 1)
    # A row that is all padding only fills the batch up: it ends at once.
    max_lengths_B = ops.where(
        lengths_B > 0,
        ops.minimum(lengths_B + options.max_extra_length, room),
        0,
    )
    step, cache = model.start_decoding(source_ids, options.beam_width, room)
    is_padding_V = ops.equal(ops.arange(model.vocabulary_size), PAD)

    def step_without_padding(ids_BW, cache):
        logits_BWV, cache = step(ids_BW, cache)
        return ops.where(is_padding_V, _NEVER, logits_BWV), cache

    return beam_search.beam_search(
        step_without_padding,
        cache,
        transformer.reorder,
        max_lengths_B,
        max_length=room,
        beam_width=options.beam_width,
        alpha=options.length_penalty,
        eos=EOS,
        num_results=options.nbest,
    )


def _room(hparams, source_length, options):
    """Returns how many tokens the longest translation of a batch may have."""
    room = source_length + options.max_extra_length
    if hparams.positions == "sinusoidal":
        return room
    if isinstance(room, int):  # XLA wants shapes that stay numbers.
        return min(room, hparams.learned_positions)
    return ops.minimum(room, hparams.learned_positions)


class LineTranslator:
    """Translates lists of lines with a model in memory.

    Lines are sorted by length and padded to few shapes, so that the number of
    compiled programs is bounded. A line that is longer than the model was made
    for is translated in pieces, cut at sentence boundaries, or between words
    where a sentence itself is too long, which a warning says.

    Args:
        model: Transformer.
        vocabulary: Vocabulary.
        options: SearchOptions.
        xla: bool, whether XLA compiles the search, once for each shape.
    """

    def __init__(self, model, vocabulary, options, xla=True):
        self.model, self.vocabulary, self.options = model, vocabulary, options
        self.max_length = model.hparams.max_length
        self._shapes = set()
        self._xla = xla
        self._search = tf.function(
            lambda source_ids: search(model, source_ids, options),
            input_signature=[tf.TensorSpec([None, None], tf.int32)],
            jit_compile=xla or None,
            autograph=False,
        )

    def translate(self, lines, first_line=1):
        """Returns for each line a list of `nbest` Translations, best first.

        Args:
            lines: list of str. A blank one gives blank translations.
            first_line: int, the number that warnings give to the first one.
        """
        pieces, owners = [], []
        for n, line in enumerate(lines):
            of_line = self._pieces(line, first_line + n) if line.strip() else []
            pieces.extend(of_line)
            owners.extend([n] * len(of_line))
        of_piece = self._translate_ids(pieces)
        of_line = [[] for _ in lines]
        for owner, translations in zip(owners, of_piece, strict=True):
            of_line[owner].append(translations)
        return [self._join(parts) for parts in of_line]

    def _join(self, parts):
        """Returns the n-th best of all pieces as one: the scores add up."""
        if not parts:
            return [Translation("", 0.0)] * self.options.nbest
        return [
            Translation(
                " ".join(part.text for part in nth if part.text),
                sum(part.score for part in nth),
            )
            for nth in zip(*parts, strict=True)
        ]

    def _pieces(self, line, number):
        """Returns the line as a list of lists of ids, none over-long."""
        (ids,) = self.vocabulary.encode([line], num_threads=1)
        if len(ids) <= self.max_length:
            return [ids]
        sentences = self._split(line, _AFTER_A_SENTENCE)
        units = []
        for sentence in sentences:
            if len(sentence) <= self.max_length:
                units.append(sentence)
            else:
                logging.warning(
                    "Line %d has a sentence of %d tokens, more than the %d "
                    "that this model takes: it is cut into pieces.",
                    number,
                    len(sentence),
                    self.max_length,
                )
                units.extend(self._cut(sentence))
        return list(self._packed(units))

    def _split(self, line, boundary):
        parts, start = [], 0
        for match in boundary.finditer(line):
            parts.append(line[start : match.end()].strip())
            start = match.end()
        parts.append(line[start:].strip())
        parts = [part for part in parts if part]
        return self.vocabulary.encode(parts, num_threads=1)

    def _cut(self, ids):
        """Yields pieces of a sentence's ids, cut before a word if possible."""
        ids, room = ids[:-1], self.max_length - 1
        while len(ids) > room:
            tokens = self.vocabulary.tokens(ids[: room + 1])
            starts = [n for n, t in enumerate(tokens) if n and t[0] == "\u2581"]
            at = starts[-1] if starts else room
            yield [*ids[:at], EOS]
            ids = ids[at:]
        yield [*ids, EOS]

    def _packed(self, units):
        """Yields units of ids joined while they fit together."""
        joined = []
        for unit in units:
            if joined and len(joined) + len(unit) > self.max_length:
                yield [*joined, EOS]
                joined = []
            joined.extend(unit[:-1])
        if joined:
            yield [*joined, EOS]

    def _translate_ids(self, sequences):
        """Returns the Translations of each sequence of ids."""
        results = [None] * len(sequences)
        for indices, batch_size, length in self._batches(sequences):
            padded = np.full((batch_size, length), PAD, np.int32)
            for row, index in enumerate(indices):
                padded[row, : len(sequences[index])] = sequences[index]
            found = self._run(padded)
            for row, index in enumerate(indices):
                results[index] = found[row]
        return results

    def _run(self, source_ids):
        if self._xla and source_ids.shape not in self._shapes:
            self._shapes.add(source_ids.shape)
            logging.info(
                "Compiling the search for %d x %d tokens: program %d of at "
                "most %d.",
                *source_ids.shape,
                len(self._shapes),
                len(_BATCH_SIZES) * len(self._ladder),
            )
        found = self._search(tf.constant(source_ids))
        count = self.options.nbest
        ids_BNT = found.ids_BWT.numpy()[:, :count]
        scores_BN = found.scores_BW.numpy()[:, :count]
        B, N, T = ids_BNT.shape
        texts = self.vocabulary.decode(ids_BNT.reshape(B * N, T))
        return [
            [
                Translation(texts[b * N + n], float(scores_BN[b, n]))
                for n in range(N)
            ]
            for b in range(B)
        ]

    def _batches(self, sequences):
        """Yields (indices, batch size, length), sequences of like length."""
        order = sorted(range(len(sequences)), key=lambda i: -len(sequences[i]))
        start = 0
        while start < len(order):
            length = self._padded_length(len(sequences[order[start]]))
            most = [
                b for b in _BATCH_SIZES if b * length <= _TOKENS_AT_ONCE
            ] or [1]
            indices = [
                i
                for i in order[start : start + most[-1]]
                if self._padded_length(len(sequences[i])) == length
            ]
            batch_size = next(b for b in most if b >= len(indices))
            yield indices, batch_size, length
            start += len(indices)

    @functools.cached_property
    def _ladder(self):
        """The lengths that sources are padded to."""
        ladder = [8, 16, 24, 32]
        while ladder[-1] < self.max_length:
            ladder.append(ladder[-2] * 2)
        return [*(n for n in ladder if n < self.max_length), self.max_length]

    def _padded_length(self, length):
        return next(n for n in self._ladder if n >= length)

    def stream(self, lines, lines_at_once):
        """Yields the list of Translations of each line, in order.

        Args:
            lines: iterable of str, read no further ahead than it has to be.
            lines_at_once: int, how many are sorted and translated together.
        """
        lines, done = iter(lines), 0
        while block := list(itertools.islice(lines, lines_at_once)):
            yield from self.translate(block, done + 1)
            done += len(block)


class Translator(LineTranslator):
    """Translates text with the model of a model directory.

    Args:
        model_dir: path of a model directory.
        checkpoint: "last", "best", "averaged", or the path of a checkpoint.
        average_last: int; above 1, the mean of so many of the last ones.
        precision: "float32", "bfloat16" or "float16".
        xla: bool, whether XLA compiles the search, once for each shape.
        options: what to change in the SearchOptions of the model's settings.

    Raises:
        InputError: the directory has no such model, or an option is wrong.
    """

    def __init__(
        self,
        model_dir,
        checkpoint="last",
        average_last=1,
        precision="float32",
        xla=True,
        **options,
    ):
        directory = model_directory.ModelDirectory(model_dir)
        model, self.description = directory.load_model(
            checkpoint, average_last, precision
        )
        super().__init__(
            model,
            directory.vocabulary(),
            SearchOptions.of(directory.settings().hparams, **options),
            xla,
        )

    def __call__(self, text):
        """Returns the best translation of a str, or those of a list of str."""
        lines = [text] if isinstance(text, str) else list(text)
        translations = [best.text for best, *_ in self.translate(lines)]
        return translations[0] if isinstance(text, str) else translations


def as_lines(translations, number=None, with_score=False):
    """Returns the Translations of one line as text, a line each.

    Args:
        translations: list of Translation.
        number: int, the number of the source line: gives "number ||| text |||
            score"; None for the bare text.
        with_score: bool, whether the bare text follows its score and a tab.
    """
    lines = []
    for text, score in translations:
        text = text.replace("\n", " ")  # One line stays one line.
        if number is not None:
            text = f"{number} ||| {text} ||| {score:.4f}"
        elif with_score:
            text = f"{score:.4f}\t{text}"
        lines.append(f"{text}\n")
    return "".join(lines)
