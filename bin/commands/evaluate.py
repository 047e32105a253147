"""Scores a model on the dev and test text of its corpus, or of another corpus.

Prints sacrebleu's BLEU and chrF with their signatures, BLEU as in the paper,
and perplexity per token of the vocabulary, without label smoothing. A parser
is scored by EVALB's rules.
"""

import functools

from absl import flags

from t2t_lite import cli, files, model_flags, terminal
from t2t_lite.decoding import search_options
from t2t_lite.storage import settings_file
from t2t_lite.text import pharaoh
from t2t_lite_data import corpus_flags

FLAGS = flags.FLAGS
model_flags.define()
model_flags.define_sentences()
model_flags.define_devices()
corpus_flags.define(
    default="the corpus that the model was trained on",
    several="to score the first that has dev and test text",
)
corpus_flags.define_alignments("dev", "test")
for module in (model_flags, corpus_flags):
    flags.adopt_module_key_flags(module)
flags.DEFINE_list(
    "splits", None, "Which splits to score. Default: all but train."
)
flags.DEFINE_string(
    "json",
    None,
    "Write the scores to this file as JSON; - prints the JSON on stdout, and "
    "the scores as text on stderr.",
)
flags.DEFINE_string(
    "report",
    None,
    "Write an evaluation card to REPORT.md and REPORT.json: the scores, and "
    "the data, settings, versions and training that they depend on.",
)
flags.DEFINE_bool(
    "choose_alignment_head",
    False,
    "Score nothing; instead find the decoder head that best aligns the words "
    "of dev, and save it with the model, to be used for alignments.",
)
cli.forbid_with(
    "choose_alignment_head", "json", "report", "sentences", *model_flags.SEARCH
)
for name in ("dev_alignments", "test_alignments"):
    cli.allow_only_with(name, "choose_alignment_head", True)
_OPTIONS = ("sentences", "devices")


def main(_: list[str]) -> int:
    files.require_writable(FLAGS.json)
    files.require_writable(FLAGS.report, ".md")
    card_json = f"{FLAGS.report}.json" if FLAGS.report else None
    files.require_apart([FLAGS.json, card_json], corpus_flags.given_files())
    settings_file.require_no_output_in(FLAGS.model_dir, FLAGS.json, card_json)
    hparams = search_options.checked_hparams(**model_flags.checked())
    if FLAGS.choose_alignment_head:
        settings_file.require_task(FLAGS.model_dir, "translation")
    names = settings_file.corpus_of(FLAGS.model_dir)
    corpus, splits = corpus_flags.read_scored(names, hparams.task, FLAGS.splits)
    if FLAGS.choose_alignment_head:
        alignments = corpus_flags.read_alignments(corpus, splits)
        links = pharaoh.links_by_split(alignments, splits)
    cli.load_tensorflow(in_parts=not FLAGS.xla)
    model_flags.settle_precision(hparams)
    from t2t_lite import tasks
    from t2t_lite.evaluation import alignment_heads, card, report
    from t2t_lite.storage.model_directory import ModelDirectory

    model = tasks.open_model(**model_flags.translator_arguments(*_OPTIONS))
    directory, task = ModelDirectory(FLAGS.model_dir), tasks.task_of(hparams)
    if FLAGS.choose_alignment_head:
        print(alignment_heads.choose(directory, model, splits, links=links))
        return 0
    splits = task.checked(splits)
    language = corpus.target_language
    score = functools.partial(task.scores, language=language, with_margins=True)
    encode = functools.partial(task.encode_targets, model.vocabulary)
    watch, checks = terminal.with_bar, corpus.read_checks()
    found = report.evaluate(
        model, splits, score, encode_targets=encode, watch=watch, checks=checks
    )
    print(found.as_text(), file=files.stream_beside(FLAGS.json))
    if FLAGS.json:
        with files.output_file(FLAGS.json) as file:
            file.write(found.as_json())
    if FLAGS.report:
        card.make_card(found, directory, model).write(FLAGS.report)
    return 0
