"""Parsing as a task: lines of words to lines that are their trees."""

import os
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from t2t_lite.errors import InputError, require
from t2t_lite.hparams import HParams
from t2t_lite.parsing import trees
from t2t_lite.task import ReadPairs, Task

if TYPE_CHECKING:
    from t2t_lite.decoding.line_predictor import LinePredictor
    from t2t_lite.decoding.search import SearchOptions
    from t2t_lite.evaluation.scores import Score
    from t2t_lite.hardware import Hardware
    from t2t_lite.model.transformer import Transformer
    from t2t_lite.storage.model_directory import ModelDirectory
    from t2t_lite.text.vocabulary import FlatIds, Vocabulary


class ParsingTask(Task):
    """Learns and scores constituency trees.

    Source: section 6.3
    """

    # Of all sentences: what EVALB leaves out must not make a model the best.
    primary_score = "f1_of_all"
    targets_are_text = False  # The symbols of a tree are one id each.

    def check_hparams(self, hparams: HParams) -> None:
        if hparams.max_extra_length < 2:
            raise InputError(
                "max_extra_length must be at least 2, for the outermost "
                "brackets; received "
                f"max_extra_length={hparams.max_extra_length}"
            )
        if hparams.is_guided:
            raise InputError(
                "guided_alignment must be 0 for parsing, whose words need no "
                "links; received "
                f"guided_alignment={hparams.guided_alignment}"
            )

    def check_pair(self, source: str, target: str) -> tuple[str, str]:
        tree = _normalized(target) if target.strip() else None
        words = [] if tree is None else trees.words(tree)
        if trees.split_words(source) != words:
            raise InputError(
                "to learn to parse, a target line must be the tree of the "
                f"source line's words; received {source!r} and {target!r}"
            )
        return source, trees.write(tree) if words else ""

    def learn_vocabulary(
        self,
        read_pairs: ReadPairs,
        kind: str,
        size: int,
        reserved: Sequence[str] = (),
    ) -> "Vocabulary":
        from t2t_lite.text import learning

        symbols = trees.symbols(_treebank(read_pairs))
        lines = (words for words, _ in read_pairs())
        return learning.learn(
            lines, kind, size, symbols=symbols, reserved=reserved
        )

    def check_vocabulary(
        self, vocabulary: "Vocabulary", read_pairs: ReadPairs | None = None
    ) -> None:
        from t2t_lite.parsing import encoding

        if not encoding.has_tree_symbols(vocabulary):
            raise InputError(
                "a vocabulary for parsing must have control symbols for the "
                "brackets and tags of trees; this one has none: start without "
                "--vocabulary and --warm_start_from, or give different ones"
            )
        missing = (
            encoding.missing_symbols(vocabulary, _treebank(read_pairs))
            if read_pairs is not None
            else []
        )
        if missing:
            raise InputError(
                f"the vocabulary given lacks {len(missing)} of the symbols of "
                f"the training trees, such as {missing[0]!r}: learn it from "
                "these trees too, or start without it"
            )

    def num_target_ids(self, vocabulary: "Vocabulary") -> int:
        from t2t_lite.parsing import encoding

        return encoding.num_target_ids(vocabulary)

    def encode_targets(
        self, vocabulary: "Vocabulary", lines: Sequence[str]
    ) -> "FlatIds":
        from t2t_lite.parsing import encoding
        from t2t_lite.text.vocabulary import FlatIds

        return FlatIds.from_lists(encoding.encode_trees(vocabulary, lines))

    def save_extras(
        self,
        directory: "ModelDirectory",
        hparams: HParams,
        vocabulary: "Vocabulary",
        read_pairs: ReadPairs,
    ) -> None:
        from t2t_lite.parsing import tag_dictionary

        if hparams.tag_dictionary:
            dictionary = tag_dictionary.learn(_treebank(read_pairs), vocabulary)
            dictionary.save(directory.path / tag_dictionary.FILE)

    def open(
        self, model_dir: str | os.PathLike, **options: Any
    ) -> "LinePredictor":
        from t2t_lite.parsing.parser import Parser

        is_one = not isinstance(model_dir, list | tuple)
        is_one &= isinstance(options.get("checkpoint", "last"), str)
        rule = "a parser is one model: give one --model_dir, one --checkpoint"
        require(rule, is_one, model_dir=model_dir)
        if options.pop("sentences", "auto") != "auto":
            raise InputError(
                "--sentences is for translation; a parser takes one sentence "
                "per line"
            )
        return Parser(model_dir, **options)

    def from_model(
        self,
        model: "Transformer",
        directory: "ModelDirectory",
        options: "SearchOptions",
        hardware: "Hardware | None" = None,
    ) -> "LinePredictor":
        from t2t_lite.parsing import tag_dictionary
        from t2t_lite.parsing.parser import LineParser

        return LineParser(
            model,
            directory.vocabulary(),
            options,
            tag_dictionary=tag_dictionary.load_tags(directory),
            hardware=hardware,
        )

    def scores(
        self,
        outputs: Sequence[str],
        references: Sequence[str],
        language: str | None = None,
        with_margins: bool = False,
    ) -> dict[str, "Score"]:
        """Returns the Scores of trees by EVALB's rules, in percent.

        Source: section 6.3, Table 4
        """
        from t2t_lite.evaluation.scores import Score
        from t2t_lite.parsing import evalb

        report = evalb.report(
            *(
                [trees.read_one(line) if line else None for line in lines]
                for lines in (references, outputs)
            )
        )
        found, short = report.all, report.short
        signature = (
            f"EVALB, COLLINS.prm, {found.sentences} sentences, "
            f"{found.errors} errors, {found.skips} skips"
        )
        named_ratios = {
            "f1_of_all": ("F1 of all", found.f1_of_all),
            "f1": ("F1 without errors and skips", found.f1),
            "recall": ("labeled recall", found.recall),
            "precision": ("labeled precision", found.precision),
            "complete_match": ("complete match", found.complete_match),
            "tagging_accuracy": ("tagging accuracy", found.tagging_accuracy),
            "f1_short": (
                f"F1 of {short.sentences} sentences of up to "
                f"{evalb.MAX_WORDS} words",
                short.f1,
            ),
        }
        return {
            key: Score(name, 100 * ratio, signature)
            for key, (name, ratio) in named_ratios.items()
        }


def _treebank(read_pairs):
    """Yields the trees of a corpus."""
    return (trees.read_one(tree) for _, tree in read_pairs() if tree)


def _normalized(line):
    try:
        return trees.normalize(trees.read_one(line))
    except InputError as error:
        raise InputError(
            "a parser's target lines must be trees (treebanks go in "
            "--train_trees, --dev_trees and --test_trees); this one is not: "
            f"{error}"
        ) from None


TASK = ParsingTask()
