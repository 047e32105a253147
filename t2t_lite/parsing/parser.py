"""Lines of words to their constituency trees."""

import functools
import os
import threading
from collections.abc import Sequence
from typing import Any

import numpy as np
import tensorflow as tf

from t2t_lite.decoding.devices import find_devices, make_replicas
from t2t_lite.decoding.line_predictor import LinePredictor, Translation
from t2t_lite.decoding.search import (
    SearchOptions,
    ids_translator,
    require_searchable,
)
from t2t_lite.errors import InputError, require, require_optional_bool
from t2t_lite.hardware import Hardware
from t2t_lite.model.transformer import Transformer
from t2t_lite.parsing import encoding, trees
from t2t_lite.parsing.constraint import TreeSymbols
from t2t_lite.parsing.tag_dictionary import (
    TagDictionary,
    load_tags,
    require_fits,
)
from t2t_lite.storage.model_directory import ModelDirectory
from t2t_lite.text.vocabulary import SPACE, Vocabulary, as_list
from t2t_lite.token_ids import EOS


class LineParser(LinePredictor):
    """Parses lines of words: a line's "translation" is its tree.

    Words are separated by white space, as a treebank's are (`It does n't .`).
    Every tree is well-formed, over exactly the words of its line; parentheses
    among them are written -LRB- and -RRB-. A blank line has a blank tree.

    Args:
        model: Transformer, trained with task=parsing.
        vocabulary: Vocabulary with the symbols of trees.
        options: SearchOptions.
        xla: bool, whether XLA compiles the search.
        tag_dictionary: TagDictionary, the tags that words may have; None for
            all.
        description: str, where the weights are from.
        devices: as for `make_replicas`.
        hardware: Hardware that the batches suit; that of this process when not
            given.

    Raises:
        InputError: the vocabulary has no symbols of trees, or the options leave
            no room for them.

    Source: section 6.3
    """

    def __init__(
        self,
        model: Transformer,
        vocabulary: Vocabulary,
        options: SearchOptions,
        xla: bool = False,
        tag_dictionary: TagDictionary | None = None,
        description: str = "a model in memory",
        devices: Sequence[str] = (),
        hardware: Hardware | None = None,
    ):
        require_optional_bool(xla=xla)
        require_searchable(model, xla)
        if options.max_extra_length < 2:
            raise InputError(
                "max_extra_length must be at least 2 to parse, for the "
                "outermost brackets; received max_extra_length="
                f"{options.max_extra_length}"
            )
        rule = "a parser takes no steering options: leave them out"
        require(rule, not options.steering, **options.steering)
        if tag_dictionary is not None:
            require_fits(tag_dictionary, vocabulary)
        self._replicas = make_replicas(model, devices)
        super().__init__(
            vocabulary,
            options,
            model=model,
            description=description,
            num_devices=max(1, len(self._replicas)),
        )
        ids = vocabulary.control_symbols
        self._symbols = TreeSymbols(ids)
        self._symbols_by_id = {i: symbol for symbol, i in ids.items()}
        pieces = vocabulary.tokens(range(vocabulary.size))
        self._num_words_V = np.array([p.count(SPACE) for p in pieces])
        self._xla, self._hardware = xla, hardware
        self._tag_dictionary = tag_dictionary
        self._making_searcher = threading.Lock()

    def _shaping(self) -> list[Any]:
        tags = self._tag_dictionary
        bits = None if tags is None else np.packbits(tags.may_have_RT).tobytes()
        return [*super()._shaping(), bits]

    def translate(
        self, lines: list[str], first_line: int = 1
    ) -> list[list[Translation]]:
        """Returns, for each line, a list of `nbest` Translations, best first.

        Args:
            lines: list of str.
            first_line: int, the number that errors give the first line.

        Raises:
            InputError: a line is longer than the model's learned positions.
        """
        lines = as_list(lines, "lines must be a list of str")
        words = [trees.split_words(line) for line in lines]
        ids = self._encode(words)
        self._check_lengths(ids, first_line)
        longest = max(map(len, ids), default=0)
        with self._making_searcher:
            search = self._searcher(self._padded_length(longest))
        found = search(tf.ragged.constant(ids, tf.int32))
        count = self.options.nbest
        ids_NWT = np.asarray(found.ids_BWT)[:, :count]
        scores_NW = np.asarray(found.scores_BW)[:, :count]
        return [
            [
                Translation(self._tree(ids_T, line_words), float(score))
                for ids_T, score in zip(ids_WT, scores_W, strict=True)
            ]
            for line_words, ids_WT, scores_W in zip(
                words, ids_NWT, scores_NW, strict=True
            )
        ]

    def _encode(self, words):
        """Returns the ids of each line; none for one without words."""
        # As a treebank writes them, because the model has seen no others.
        lines = [
            " ".join(map(trees.escape, line_words)).replace(SPACE, "_")
            for line_words in words
        ]
        encoded = self.vocabulary.encode(lines)
        return [
            ids if line_words else []
            for ids, line_words in zip(encoded, words, strict=True)
        ]

    def _check_lengths(self, ids, first_line):
        hparams = self.model.hparams
        if hparams.positions != "learned":
            return
        most = hparams.learned_positions - self.options.max_extra_length
        for number, line_ids in enumerate(ids, first_line):
            if len(line_ids) > most:
                raise InputError(
                    f"line {number} has {len(line_ids)} tokens; the learned "
                    f"positions of this model leave room for {most}"
                )

    def _padded_length(self, longest):
        """Returns the length to search up to: one of few, each with a graph."""
        length = self.model.hparams.max_length
        while length < longest:
            length *= 2
        return length

    @functools.cache  # noqa: B019
    def _searcher(self, max_length):
        return ids_translator(
            self.model,
            self.options,
            self._xla,
            max_length=max_length,
            constraint=self._constraint,
            hardware=self._hardware,
            replicas=self._replicas,
        )

    def _constraint(self, batch):
        num_words_V = tf.constant(self._num_words_V, tf.int32)
        num_words_BS = tf.gather(num_words_V, batch.source_ids_BS)
        tags_BNV = None
        if self._tag_dictionary is not None:
            tags_BNV = self._tag_dictionary.tags(
                batch.source_ids_BS, self._num_words_V > 0
            )
        return self._symbols.constraint(
            tf.reduce_sum(num_words_BS, axis=1),
            batch.max_lengths_B,
            batch.beam_width,
            tags_BNV=tags_BNV,
        )

    def _tree(self, ids_T, words):
        """Returns a tree as a line; "" if it has no words or did not end."""
        ids = ids_T.tolist()
        if not words or EOS not in ids:
            return ""
        symbols = [self._symbols_by_id[i] for i in ids[: ids.index(EOS)]]
        return trees.write(trees.delinearize(symbols, words))


class Parser(LineParser):
    """Parses lines with the model of a model directory.

    Args:
        model_dir: path of a model directory.
        checkpoint: "last", "best", "averaged", or the path of a checkpoint.
        average_last: int; above 1, the mean of that many of the last ones.
        precision: "float32", "bfloat16" or "float16"; or "int8", with xla=True
            on a CPU: of the products with weights in each step of the search,
            while all else is float32.
        xla: bool, whether XLA compiles the search. Sentences of all lengths,
            with room for 300 symbols more, need many programs.
        devices: "all" GPUs of the machine (without any, its CPU), or how many.
        hardware: that of LineParser.
        **options: what to change in the SearchOptions of the model's settings.

    Raises:
        InputError: the directory has no such model, or an option is wrong.
    """

    def __init__(
        self,
        model_dir: str | os.PathLike,
        checkpoint: str = "last",
        average_last: int = 1,
        precision: str = "float32",
        xla: bool = False,
        devices: str | int = 1,
        hardware: Hardware | None = None,
        **options: Any,
    ):
        directory = ModelDirectory(model_dir)
        directory.require_task("parsing")
        search_options = SearchOptions.from_hparams(
            directory.settings().hparams, Parser, **options
        )
        vocabulary = directory.vocabulary()
        model, description, record = directory.load_model(
            checkpoint,
            average_last,
            precision,
            num_target_ids=encoding.num_target_ids(vocabulary),
        )
        super().__init__(
            model,
            vocabulary,
            search_options,
            xla=xla,
            tag_dictionary=load_tags(directory),
            description=description,
            devices=find_devices(devices),
            hardware=hardware,
        )
        self.training_record = record
