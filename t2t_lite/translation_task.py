"""Translation as a task: lines of text to lines of text."""

import itertools
import os
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from t2t_lite.errors import InputError
from t2t_lite.hparams import HParams
from t2t_lite.task import ReadPairs, Task

if TYPE_CHECKING:
    from t2t_lite.decoding.line_predictor import LinePredictor
    from t2t_lite.decoding.search import SearchOptions
    from t2t_lite.evaluation.scores import Score
    from t2t_lite.hardware import Hardware
    from t2t_lite.model.transformer import Transformer
    from t2t_lite.storage.model_directory import ModelDirectory
    from t2t_lite.text.vocabulary import FlatIds, Vocabulary


class TranslationTask(Task):
    """Learns and scores translations.

    Source: sections 5 and 6.1
    """

    primary_score = "bleu"

    def check_hparams(self, hparams: HParams) -> None:
        if hparams.tag_dictionary:
            raise InputError(
                "tag_dictionary must be False unless task=parsing; received "
                f"tag_dictionary={hparams.tag_dictionary}"
            )

    def check_pair(self, source: str, target: str) -> tuple[str, str]:
        return source, target

    def learn_vocabulary(
        self,
        read_pairs: ReadPairs,
        kind: str,
        size: int,
        reserved: Sequence[str] = (),
    ) -> "Vocabulary":
        from t2t_lite.text import learning

        lines = itertools.chain.from_iterable(read_pairs())
        return learning.learn(lines, kind, size, reserved=reserved)

    def check_vocabulary(
        self, vocabulary: "Vocabulary", read_pairs: ReadPairs | None = None
    ) -> None:
        symbols = list(vocabulary.control_symbols)
        if symbols:
            raise InputError(
                "a vocabulary for translation must have no control symbols; "
                f"this one has {len(symbols)}, such as {symbols[0]!r}: start "
                "without --vocabulary and --warm_start_from, or give different "
                "ones"
            )

    def num_target_ids(self, vocabulary: "Vocabulary") -> int:
        return vocabulary.target.size

    def encode_targets(
        self, vocabulary: "Vocabulary", lines: Sequence[str]
    ) -> "FlatIds":
        return vocabulary.target.encode_flat(lines)

    def save_extras(
        self,
        directory: "ModelDirectory",
        hparams: HParams,
        vocabulary: "Vocabulary",
        read_pairs: ReadPairs,
    ) -> None:
        """Writes nothing: weights and vocabulary are all there is."""

    def open(
        self, model_dir: str | os.PathLike, **options: Any
    ) -> "LinePredictor":
        from t2t_lite.translation.line_translator import Translator

        return Translator(model_dir, **options)

    def from_model(
        self,
        model: "Transformer",
        directory: "ModelDirectory",
        options: "SearchOptions",
        hardware: "Hardware | None" = None,
    ) -> "LinePredictor":
        from t2t_lite.translation.line_translator import LineTranslator

        return LineTranslator.from_model(
            model,
            directory.vocabulary(),
            options,
            xla=False,
            splitting=directory.settings().splitting(),
            hardware=hardware,
        )

    def scores(
        self,
        outputs: Sequence[str],
        references: Sequence[str],
        language: str | None = None,
        with_margins: bool = False,
    ) -> dict[str, "Score"]:
        from t2t_lite.evaluation.scores import score_text

        return score_text(
            outputs, references, language=language, with_margins=with_margins
        )


TASK = TranslationTask()
