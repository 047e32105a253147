"""Lines of text to their translations."""

import functools
import itertools
import math
import os
from collections.abc import Sequence
from typing import Any

import numpy as np
import tensorflow as tf
from absl import logging
from keras import ops

from t2t_lite.alignment.glossary import Glossary
from t2t_lite.alignment.kept_spans import Keeper
from t2t_lite.alignment.word_alignment import Aligner
from t2t_lite.constraints.terms import Term, merge_terms
from t2t_lite.decoding import piece_prefix, saved_model
from t2t_lite.decoding.devices import find_devices
from t2t_lite.decoding.engine import Engine, model_engine
from t2t_lite.decoding.ensemble import Ensemble, models_of
from t2t_lite.decoding.line_predictor import LinePredictor, Translation
from t2t_lite.decoding.piece_prefix import NO_PREFIX, PiecePrefix
from t2t_lite.decoding.search import max_target_length
from t2t_lite.decoding.search_options import LINE_ONLY_OPTIONS, SearchOptions
from t2t_lite.errors import (
    InputError,
    require,
    require_int,
    require_optional_bool,
)
from t2t_lite.hardware import Hardware
from t2t_lite.model.alignment_head import AlignmentHead
from t2t_lite.model.transformer import Transformer
from t2t_lite.storage.model_directory import LoadedModel, ModelDirectory
from t2t_lite.text.long_lines import LineSplitter, Pieces
from t2t_lite.text.sentences import Splitting
from t2t_lite.text.vocabulary import (
    SPACE,
    Vocabulary,
    as_list,
    require_vocabulary,
)
from t2t_lite.translation.kept_lines import KeptLines
from t2t_lite.translation.line_alignment import with_links
from t2t_lite.translation.members import Paths, members_of, require_together
from t2t_lite.translation.piece_translation import PieceTranslator, Request
from t2t_lite.translation.tensor_translation import (
    TensorTranslator,
    require_strings,
)


class LineTranslator(LinePredictor):
    """Translates lines of text, however long they are.

    A line that is to be split is translated sentence by sentence. A sentence
    that is longer than the model was made for is translated in pieces, cut
    between words; a warning says so.

    Args:
        engine: Engine.
        vocabulary: Vocabulary.
        options: SearchOptions, those that the engine searches with.
        splitting: Splitting; when not given, only what is over-long is split.
        alignment_head: AlignmentHead to align words by; the mean over those of
            the last layer when not given.
    """

    _accepted = "a str, a list of str or a string tensor"
    _takes_prefixes = True
    _takes_tensors = True

    def __init__(
        self,
        engine: Engine,
        vocabulary: Vocabulary,
        options: SearchOptions,
        splitting: Splitting | None = None,
        alignment_head: AlignmentHead | None = None,
    ):
        super().__init__(
            vocabulary,
            options,
            model=engine.model,
            description=engine.description,
            num_devices=engine.num_devices,
        )
        self.translate_ids = engine.translate_ids
        self._takes_beginnings = engine.translate_prefixed is not None
        self._finds_alternatives = engine.find_alternatives is not None
        self._piece_translator = PieceTranslator(
            engine,
            vocabulary.target,
            options.nbest,
            # Made on first use: without terms, none is needed.
            weigh=lambda pairs: self._aligner.weights(pairs),
        )
        self._glossary = None
        if options.glossary:
            self._glossary = Glossary(options.glossary, vocabulary)
        if splitting is None:
            splitting = Splitting(whole_up_to=engine.max_length)
        self._keeper = None
        if options.keep:
            apart_from = [
                *itertools.chain(*options.glossary),
                *options.suppress,
                *(piece.strip(SPACE) for piece in options.suppress_pieces),
            ]
            self._keeper = Keeper(
                options.keep,
                vocabulary,
                language=splitting.language,
                apart_from=apart_from,
            )
        self.max_length = engine.max_length
        self._splitter = LineSplitter(vocabulary, engine.max_length, splitting)
        self._splitting = splitting
        self._alignment_head = alignment_head

    def _shaping(self) -> list[Any]:
        # `sha256` covers all weights, and these say what they compute.
        others = [each.hparams for each in models_of(self.model)[1:]]
        found = [*super()._shaping(), *others, self._splitting]
        options = self.options
        aligns = options.alignments or options.keep or options.glossary
        if aligns and self._alignment_head is not None:
            found.append(self._alignment_head)
        return found

    @staticmethod
    def from_model(
        model: Transformer,
        vocabulary: Vocabulary,
        options: SearchOptions | None = None,
        xla: bool | None = None,
        splitting: Splitting | None = None,
        hardware: Hardware | None = None,
    ) -> "LineTranslator":
        """Returns the LineTranslator of a Transformer in memory.

        All devices to which a MirroredStrategy gave its weights take part.

        Args:
            model: Transformer.
            vocabulary: Vocabulary.
            options: SearchOptions; those of the model's hparams when not given.
            xla: that of Translator.
            splitting: Splitting; when not given, only what is over-long is
                split.
            hardware: that of Translator.

        Raises:
            InputError: the model does not have as many ids as the vocabulary,
                or has weights that are not finite.
            TypeError: the model is not a Transformer, the vocabulary not a
                Vocabulary, or the options not SearchOptions.
        """
        if not isinstance(model, Transformer):
            raise TypeError(f"model must be a Transformer; received {model!r}")
        require_vocabulary(vocabulary)
        require(
            "the model must have as many ids as the vocabulary",
            model.vocabulary_size == vocabulary.size,
            model=model.vocabulary_size,
            vocabulary=vocabulary.size,
        )
        require(
            "the model must have as many target ids as the vocabulary",
            model.num_target_ids == vocabulary.target.size,
            model=model.num_target_ids,
            vocabulary=vocabulary.target.size,
        )
        if options is None:
            options = SearchOptions.from_hparams(model.hparams)
        if not isinstance(options, SearchOptions):
            raise TypeError(
                f"options must be SearchOptions; received {options!r}"
            )
        if not model.built:  # It has not been called yet.
            model.build()
        rule = "the weights of a model must be finite"
        for weight in model.weights:
            is_finite = bool(ops.all(ops.isfinite(weight)))
            require(rule, is_finite, weight=weight.path)
        engine = model_engine(
            model, vocabulary, options=options, xla=xla, hardware=hardware
        )
        return LineTranslator(
            engine, vocabulary, options=options, splitting=splitting
        )

    @staticmethod
    def from_saved_model(path: str | os.PathLike) -> "LineTranslator":
        """Returns the LineTranslator of a SavedModel that bin/export wrote.

        Its search options are those that it was exported with.

        Args:
            path: the directory of one version.

        Raises:
            InputError: there is no such SavedModel.
        """
        loaded = saved_model.load(path)
        return LineTranslator(
            loaded.engine,
            loaded.vocabulary,
            options=loaded.options,
            splitting=loaded.splitting,
        )

    def translate(
        self,
        lines: list[str],
        first_line: int = 1,
        prefixes: list[str] | None = None,
    ) -> list[list[Translation]]:
        """Returns for each line a list of `nbest` Translations, best first.

        Translations that terms were put into keep the order that they had
        without them. With the option `alternatives`, those are listed, as by
        the method of that name, and -inf is the score of missing ones. With the
        option `alignments`, the results are AlignedTranslations.

        Args:
            lines: list of str. A blank one has blank translations.
            first_line: int, the number of the first line in messages.
            prefixes: list of str, what the translation of each line begins
                with, cut within a word or not; None for nothing. A prefix's
                sentences are those of the line, as far as the line has any.

        Raises:
            InputError: a prefix cannot begin a translation of this engine, or
                there is not one for each line.
        """
        lines = as_list(lines, "lines must be a list of str")
        count = self.options.alternatives
        found = self._translate(
            lines,
            first_line=first_line,
            prefixes=prefixes,
            num_alternatives=count,
        )
        for number, (best, *_) in enumerate(found, first_line):
            if best.score == -math.inf:
                logging.warning(
                    "Line %d: no translation satisfies all options, so the "
                    "line is left blank.",
                    number,
                )
        return found

    def alternatives(
        self, text: str, prefix: str = "", count: int = 5
    ) -> list[Translation]:
        """Returns translations that continue a prefix with different words.

        Args:
            text: str.
            prefix: str, what the translations begin with. If it is blank or
                ends with a space, they differ in the next word; if it ends
                within a word, in the rest of that, or else in the next one.
            count: int, how many words, at least 1.

        Returns:
            at most `count` Translations: the best one with each of the
            likeliest words, likeliest first. Sentences after the one that the
            prefix ends in have their best translation.

        Raises:
            InputError: no translation of this engine can begin with the prefix,
                or its options have sampling, a glossary or keep.
            TypeError: `text` or `prefix` is not a str.
        """
        require_int(1, count=count)
        rule = (
            "alternatives cannot be combined with sampling, a glossary or keep"
        )
        options = self.options
        holds = not (options.samples or options.glossary or options.keep)
        require(rule, holds, **self.options.steering)
        for name, value in (("text", text), ("prefix", prefix)):
            if not isinstance(value, str):
                raise TypeError(f"{name} must be a str; received {value!r}")
        (found,) = self._translate(
            [text], first_line=1, prefixes=[prefix], num_alternatives=count
        )
        return [each for each in found if each.score > -math.inf]

    def _translate(
        self,
        lines: list[str],
        first_line: int,
        prefixes: list[str] | None,
        num_alternatives: int,
    ) -> list[list[Translation]]:
        """Returns what `translate` does, or alternatives if any are asked for.

        Args:
            lines: that of `translate`.
            first_line: that of `translate`.
            prefixes: that of `translate`.
            num_alternatives: 0 for the best translations.
        """
        require(
            "this model cannot give alternatives: open its model directory "
            "with Translator, or call a SavedModel's signature alternatives",
            self._finds_alternatives or not num_alternatives,
            model=self.description,
        )
        kept = self._kept(lines, first_line, prefixes)
        if kept is not None:
            lines, prefixes = kept.lines, kept.prefixes
        pieces = self._splitter.split_lines(lines, first_line)
        begun = self._beginnings(
            pieces, lines, first_line=first_line, prefixes=prefixes
        )
        asked = self._terms(pieces, begun, first_line=first_line, kept=kept)
        requests = [
            Request(ids, text, beginning=beginning, terms=terms)
            for ids, text, beginning, terms in zip(
                pieces.ids, pieces.texts, begun, asked, strict=True
            )
        ]
        if num_alternatives:
            by_piece = self._alternatives(pieces, requests, num_alternatives)
        else:
            by_piece = self._piece_translator.best(requests)
        parts = [[] for _ in lines]
        for n, translations in zip(pieces.line_indices, by_piece, strict=True):
            parts[n].append(translations)
        nothing = [Translation("", 0.0)] * self.options.nbest
        if num_alternatives:  # There is no other.
            missing = [Translation("", -math.inf)] * (num_alternatives - 1)
            nothing = [*nothing[:1], *missing]
        found = [_join(each) if each else nothing for each in parts]
        if self.options.alignments:
            return with_links(
                found,
                lines,
                pieces=pieces,
                by_piece=by_piece,
                aligner=self._aligner,
            )
        if kept is None:
            return found
        return kept.put_back(
            found, pieces, by_piece=by_piece, aligner=self._aligner
        )

    def _kept(
        self, lines: list[str], first_line: int, prefixes: list[str] | None
    ) -> KeptLines | None:
        """Returns the KeptLines; warns of what cannot be kept."""
        if self._keeper is None:
            return None
        prefixes = _checked_prefixes(prefixes, lines)
        kept = KeptLines(self._keeper, lines, prefixes)
        for n, item in kept.unkept():
            logging.warning(
                "Line %d has too many items to keep, so %r is translated.",
                first_line + n,
                item,
            )
        return kept

    @functools.cached_property
    def _aligner(self) -> Aligner:
        head = self._alignment_head
        heads = None if head is None else [head]
        return Aligner(models_of(self.model)[0], self.vocabulary, heads)

    def _beginnings(
        self,
        pieces: Pieces,
        lines: list[str],
        first_line: int,
        prefixes: list[str] | None,
    ) -> list[PiecePrefix]:
        """Returns what the translation of each piece begins with."""
        no_prefixes = [NO_PREFIX] * len(pieces.ids)
        if prefixes is None:
            return no_prefixes
        prefixes = _checked_prefixes(prefixes, lines)
        if not any(map(str.strip, prefixes)):
            return no_prefixes
        require(
            "this model cannot take prefixes: open its model directory with "
            "Translator, or call a SavedModel's signature translate_prefix",
            self._takes_beginnings,
            model=self.description,
        )
        begun = piece_prefix.split_by_piece(prefixes, pieces, first_line)
        piece_prefix.require_possible(
            begun,
            pieces,
            vocabulary=self.vocabulary.target,
            max_target_length=self._max_target_length,
            first_line=first_line,
        )
        return begun

    def _max_target_length(self, source_length: int) -> int:
        """Returns how many tokens a translation may have, with EOS."""
        if self.model is None:
            return source_length + self.options.max_extra_length
        return max_target_length(
            self.model.hparams, source_length, self.options
        )

    def _terms(
        self,
        pieces: Pieces,
        begun: list[PiecePrefix],
        first_line: int,
        kept: KeptLines | None,
    ) -> list[list[Term]]:
        """Returns the Terms of each piece; warns of those left out."""
        if self._glossary is None and kept is None:
            return [[]] * len(pieces.ids)
        prefixes = [each.text for each in begun]
        encoded = self.vocabulary.target.encode(prefixes, num_threads=1)
        asked = []
        for ids, n, text, begin, prefix_ids in zip(
            pieces.ids,
            pieces.line_indices,
            pieces.texts,
            prefixes,
            encoded,
            strict=True,
        ):
            num_begun = len(prefix_ids) - 1  # Without its EOS.
            room = self._max_target_length(len(ids)) - 1 - num_begun
            terms, messages = [], []
            if kept is not None:
                terms, messages = kept.terms(n, text, prefix=begin, room=room)
                room -= sum(len(term.ids) for term in terms)
            if self._glossary is not None:
                others, more = self._glossary.terms(text, room)
                terms = merge_terms([*terms, *others])
                messages = [*messages, *more]
            for message in messages:
                logging.warning("Line %d: %s.", first_line + n, message)
            asked.append(terms)
        return asked

    def _alternatives(
        self, pieces: Pieces, requests: list[Request], count: int
    ) -> list[list[Translation]]:
        """Returns the list of Translations of each piece.

        The first piece of a line whose translation the prefix leaves open has
        alternatives; the others have only their best one.
        """
        lines_done, is_open = set(), []
        for line, request in zip(pieces.line_indices, requests, strict=True):
            goes_on = not request.beginning.is_complete
            is_open.append(goes_on and line not in lines_done)
            if goes_on:
                lines_done.add(line)
        return self._piece_translator.alternatives(requests, is_open, count)

    def __call__(
        self,
        text: Any,
        *,
        with_scores: bool = False,
        prefix: str | list[str] | None = None,
    ) -> Any:
        """Returns the best translation of each text.

        Args:
            text: a str, a list of str, or a string tensor of any shape, also
                within a tf.function or Dataset.map. (A map runs on the CPU, so
                a model on another device must be one with xla=False.)
            with_scores: bool, whether to return (translations, scores), the
                scores float32 (log probability in nats / length penalty).
            prefix: what the translation begins with, as in `translate`; a str
                or a list of str, as `text` is, and None for a tensor.

        Returns:
            a str, a list of str, or a string tensor, as `text` is.

        Raises:
            TypeError: `text` is none of these, or not a tensor in a
                tf.function.
        """
        is_tensor = tf.is_tensor(text) and self._takes_tensors
        if self._takes_tensors and not (is_tensor or tf.executing_eagerly()):
            raise TypeError(
                "text must be a string tensor that a tf.function is given; "
                f"received a {type(text).__name__} inside of one"
            )
        if not is_tensor:
            return super().__call__(
                text, with_scores=with_scores, prefix=prefix
            )
        require_optional_bool(with_scores=with_scores)
        rule = "prefix must be None where text is a tensor"
        require(rule, prefix is None, prefix=prefix)
        lines_only = {
            name: self.options.steering[name]
            for name in LINE_ONLY_OPTIONS
            if name in self.options.steering
        }
        rule = "text must be a str or a list of str for these options"
        require(rule, not lines_only, **lines_only)
        require_strings(text, self._accepted)
        translations, scores = self._translate_tensor(text)
        return (translations, scores) if with_scores else translations

    @functools.cached_property
    def _translate_tensor(self) -> TensorTranslator:
        return TensorTranslator(
            self.translate_ids, self._splitter, self.vocabulary.target
        )


class Translator(LineTranslator):
    """Translates text with the model of a model directory, or with several.

    Several translate together, as an ensemble: the log probabilities of each
    token are averaged. Options and splitting are those of the first.

    Args:
        model_dir: path of a model directory, or a list of them, whose models
            must have the same vocabulary.
        checkpoint: "last", "best", "averaged", or the path of a checkpoint; or
            a list of them, one for each model directory, or all from one.
        average_last: int; above 1, the mean of that many of the last
            checkpoints.
        precision: "float32", "bfloat16" or "float16"; or "int8", with xla=True
            on a CPU: of the products with weights in each step of the search,
            while all else is float32.
        xla: bool, whether XLA compiles the search, once for each shape; None:
            if there is a GPU.
        sentences: "auto" to split lines of several sentences if the model was
            trained on single ones, else only lines longer than most that it was
            trained on; "split" to split all; "whole" to split only the
            over-long.
        devices: "all" GPUs of the machine (without any, its CPU), or how many;
            lists of lines are divided among them.
        hardware: Hardware that the batches suit; that of this process when not
            given.
        options: what to change in the SearchOptions of the model's settings.

    Raises:
        InputError: the directory has no such model, or an option is wrong.
    """

    def __init__(
        self,
        model_dir: Paths,
        checkpoint: str | Sequence[str] = "last",
        average_last: int = 1,
        precision: str = "float32",
        xla: bool | None = None,
        sentences: str = "auto",
        devices: str | int = 1,
        hardware: Hardware | None = None,
        **options: Any,
    ):
        members = members_of(model_dir, checkpoint)
        directories = [ModelDirectory(each.model_dir) for each in members]
        for directory in directories:
            directory.require_task("translation")
        require_together(members)
        settings = directories[0].settings()
        vocabulary = directories[0].vocabulary()
        splitting = settings.splitting(sentences)
        search_options = SearchOptions.from_hparams(
            settings.hparams, Translator, **options
        )
        loaded = [
            directory.load_model(each.checkpoint, average_last, precision)
            for directory, each in zip(directories, members, strict=True)
        ]
        model, description, record = loaded[0]
        if len(loaded) > 1:
            _require_different(loaded)
            model = Ensemble([each.model for each in loaded])
            description = " and ".join(
                f"{directory.path} ({each.description})"
                for directory, each in zip(directories, loaded, strict=True)
            )
            record = {}  # There is none for several.
        head = settings.alignment_head
        super().__init__(
            model_engine(
                model,
                vocabulary,
                options=search_options,
                xla=xla,
                description=description,
                devices=find_devices(devices),
                hardware=hardware,
            ),
            vocabulary,
            options=search_options,
            splitting=splitting,
            alignment_head=None if head is None else AlignmentHead(*head),
        )
        self.training_record = record


def _checked_prefixes(prefixes: Any, lines: list[str]) -> list[str] | None:
    """Returns the prefixes, if there are any, as a list.

    Raises:
        InputError: there is not one for each line.
        TypeError: they are not a list of str.
    """
    if prefixes is None:
        return None
    prefixes = as_list(prefixes, "prefixes must be a list of str")
    require(
        "there must be a prefix for each line, blank for none",
        len(prefixes) == len(lines),
        lines=len(lines),
        prefixes=len(prefixes),
    )
    return prefixes


def _require_different(loaded: Sequence[LoadedModel]) -> None:
    """Raises InputError if two models have the same weights."""
    for one, other in itertools.combinations(loaded, 2):
        weights = one.model.weights, other.model.weights
        is_same = len(weights[0]) == len(weights[1]) and all(
            itertools.starmap(np.array_equal, zip(*weights, strict=True))
        )
        if is_same:
            raise InputError(
                f"{one.description} and {other.description} have the same "
                "weights: models that translate together must be different"
            )


def _join_one(parts: tuple[Translation, ...]) -> Translation:
    score = sum(part.score for part in parts)
    if score == -math.inf:  # A piece has no such translation.
        return Translation("", score)
    return Translation(" ".join(p.text for p in parts if p.text), score)


def _join(parts: list[list[Translation]]) -> list[Translation]:
    """Returns the n-th best of all pieces as one: their scores add up.

    >>> _join([[Translation("ein Hund", -0.5)], [Translation("rennt", -1.0)]])
    [Translation(text='ein Hund rennt', score=-1.5)]
    """
    return [_join_one(nth_best) for nth_best in zip(*parts, strict=True)]
