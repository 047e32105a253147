"""Learns a SentencePiece vocabulary from the training text of a corpus.

bin/train does this by itself. Learn a vocabulary beforehand to give several
runs the same one, with --vocabulary.
"""

import functools

from absl import flags

from t2t_lite import cli, files
from t2t_lite.hparams import HParams
from t2t_lite_data import corpus_flags

FLAGS = flags.FLAGS
corpus_flags.define()
flags.adopt_module_key_flags(corpus_flags)
flags.DEFINE_string(
    "output", None, "Required: where to write the SentencePiece model."
)
flags.mark_flag_as_required("output")
flags.DEFINE_enum("type", "bpe", ["bpe", "unigram"], "How pieces are learned.")
flags.DEFINE_integer("size", 37_000, "Size of the vocabulary.", lower_bound=1)
flags.DEFINE_string(
    "reserved_symbols",
    "",
    "Words separated by commas, such as <bt>, each of which is to be one id.",
)


def main(_: list[str]) -> int:
    reserved = HParams(reserved_symbols=FLAGS.reserved_symbols).reserved
    files.require_writable(FLAGS.output, may_be_stdout=False)
    files.require_apart([FLAGS.output], corpus_flags.given_files())
    from t2t_lite import tasks

    corpus = corpus_flags.find_corpus(corpus_flags.given_flags())
    task = tasks.named(corpus.task or "translation")
    with cli.signals_end_at_once():  # SentencePiece may take minutes.
        vocabulary = task.learn_vocabulary(
            functools.partial(corpus.pairs, "train"),
            FLAGS.type,
            FLAGS.size,
            reserved=reserved,
        )
    vocabulary.save(FLAGS.output)
    told = files.stream_beside(FLAGS.output)
    learned = f"{FLAGS.output}: {vocabulary.size} ids, from the training text"
    print(learned, file=told)
    return 0
