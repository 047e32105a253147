"""Lines of words to their constituency trees."""

import functools

import numpy as np
import tensorflow as tf

from t2t_lite.decoding.line_predictor import LinePredictor, Translation
from t2t_lite.decoding.search import SearchOptions, ids_translator
from t2t_lite.errors import InputError
from t2t_lite.parsing import encoding, tag_dictionary, trees
from t2t_lite.parsing.constraint import TreeSymbols
from t2t_lite.storage import model_directory
from t2t_lite.token_ids import EOS

_SPACE_OF_PIECES = "\u2581"  # What SentencePiece writes for a space.


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

    Raises:
        InputError: the vocabulary has no trees, or there is no room for them.

    Source: section 6.3.
    """

    def __init__(
        self,
        model,
        vocabulary,
        options,
        xla=False,
        tag_dictionary=None,
        description="a model in memory",
    ):
        if options.max_extra_length < 2:
            raise InputError(
                "max_extra_length must be at least 2 to parse, for the "
                "outermost brackets; received max_extra_length="
                f"{options.max_extra_length}"
            )
        super().__init__(
            vocabulary, options, model=model, description=description
        )
        ids = vocabulary.control_symbols
        self._symbols = TreeSymbols(ids)
        self._names = {i: symbol for symbol, i in ids.items()}
        pieces = vocabulary.tokens(range(vocabulary.size))
        self._spaces_V = np.array([p.count(_SPACE_OF_PIECES) for p in pieces])
        self._xla = xla
        self._tag_dictionary = tag_dictionary

    def translate(self, lines, first_line=1):
        """Returns for each line a list of `nbest` Translations, best first.

        Args:
            lines: list of str.
            first_line: int, the number that errors give to the first one.

        Raises:
            InputError: a line is longer than the model's learned positions.
        """
        words = [trees.split_words(line) for line in lines]
        ids = self._ids(words)
        longest = max(map(len, ids), default=0)
        self._check(ids, first_line)
        found = self._searcher(self._room(longest))(
            tf.ragged.constant(ids, tf.int32)
        )
        count = self.options.nbest
        ids_NWT = found.ids_BWT.numpy()[:, :count]
        scores_NW = found.scores_BW.numpy()[:, :count]
        return [
            [
                Translation(self._tree(ids_T, of_line), float(score))
                for ids_T, score in zip(ids_WT, scores_W, strict=True)
            ]
            for of_line, ids_WT, scores_W in zip(
                words, ids_NWT, scores_NW, strict=True
            )
        ]

    def _ids(self, words):
        """Returns the ids of each line; none for one without words."""
        # As a treebank writes them, for the model has seen no others.
        lines = [
            " ".join(map(trees.escaped, of_line)).replace(_SPACE_OF_PIECES, "_")
            for of_line in words
        ]
        encoded = self.vocabulary.encode(lines)
        return [
            ids if of_line else []
            for ids, of_line in zip(encoded, words, strict=True)
        ]

    def _check(self, ids, first_line):
        hparams = self.model.hparams
        if hparams.positions != "learned":
            return
        most = hparams.learned_positions - self.options.max_extra_length
        for number, of_line in enumerate(ids, first_line):
            if len(of_line) > most:
                raise InputError(
                    f"line {number} has {len(of_line)} tokens; the learned "
                    f"positions of this model leave room for {most}"
                )

    def _room(self, longest):
        """Returns the length to search up to: few, for each is a graph."""
        room = self.model.hparams.max_length
        while room < longest:
            room *= 2
        return room

    @functools.cache  # noqa: B019
    def _searcher(self, max_length):
        return ids_translator(
            self.model,
            self.options,
            self._xla,
            max_length=max_length,
            constraint=self._constraint,
        )

    def _constraint(self, source_ids, max_lengths_B, beam_width):
        num_words_B = tf.reduce_sum(
            tf.gather(tf.constant(self._spaces_V, tf.int32), source_ids), 1
        )
        tags_BNV = None
        if self._tag_dictionary is not None:
            tags_BNV = self._tag_dictionary.tags(source_ids, self._spaces_V > 0)
        return self._symbols.constraint(
            num_words_B, max_lengths_B, beam_width, tags_BNV
        )

    def _tree(self, ids_T, words):
        """Returns a tree as a line; "" for no words, or no such tree found."""
        ids = ids_T.tolist()
        if not words or EOS not in ids:
            return ""
        symbols = [self._names[i] for i in ids[: ids.index(EOS)]]
        return trees.write(trees.delinearized(symbols, words))


class Parser(LineParser):
    """Parses lines with the model of a model directory.

    Args: those of Translator, but XLA is off: sentences of all lengths, with
        room for 300 symbols more, would need many programs.

    Raises:
        InputError: the directory has no such model, or an option is wrong.
    """

    def __init__(
        self,
        model_dir,
        checkpoint="last",
        average_last=1,
        precision="float32",
        xla=False,
        **options,
    ):
        directory = model_directory.ModelDirectory(model_dir)
        directory.require_task("parsing")
        vocabulary = directory.vocabulary()
        model, description = directory.load_model(
            checkpoint,
            average_last,
            precision,
            num_target_ids=encoding.num_target_ids(vocabulary),
        )
        options = SearchOptions.from_hparams(model.hparams, **options)
        super().__init__(
            model,
            vocabulary,
            options,
            xla,
            tag_dictionary.load_from(directory),
            description,
        )
