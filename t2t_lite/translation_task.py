"""Translation as a task: lines of text to lines of text."""

import itertools

from t2t_lite.errors import InputError
from t2t_lite.task import Task


class TranslationTask(Task):
    """Learns and scores translations.

    Source: sections 5 and 6.1
    """

    primary_score = "bleu"

    def check_hparams(self, hparams):
        if hparams.tag_dictionary:
            raise InputError(
                "tag_dictionary must be False unless task=parsing; received "
                f"tag_dictionary={hparams.tag_dictionary}"
            )

    def check_pair(self, source, target):
        return source, target

    def learn_vocabulary(self, read_pairs, kind, size):
        from t2t_lite.text import learning

        lines = itertools.chain.from_iterable(read_pairs())
        return learning.learn(lines, kind, size)

    def check_vocabulary(self, vocabulary, read_pairs=None):
        symbols = list(vocabulary.control_symbols)
        if symbols:
            raise InputError(
                "a vocabulary for translation has no control symbols; this one "
                f"has {len(symbols)}, such as {symbols[0]!r}: start without "
                "--vocabulary and --warm_start_from, or with others"
            )

    def num_target_ids(self, vocabulary):
        return vocabulary.size

    def encode_targets(self, vocabulary, lines):
        return vocabulary.encode_flat(lines)

    def save_extras(self, directory, hparams, vocabulary, read_pairs):
        """Writes nothing: weights and vocabulary are all there is."""

    def open(self, model_dir, **options):
        from t2t_lite.decoding.translation import Translator

        return Translator(model_dir, **options)

    def from_model(self, model, directory, options):
        from t2t_lite.decoding.translation import LineTranslator

        return LineTranslator.from_model(
            model, directory.vocabulary(), options, xla=False
        )

    def scores(self, outputs, references, language=None, with_margins=False):
        from t2t_lite.evaluation.scores import score_text

        return score_text(
            outputs, references, language=language, with_margins=with_margins
        )


TASK = TranslationTask()
