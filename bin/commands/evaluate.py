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
from t2t_lite_data import corpus_flags

FLAGS = flags.FLAGS
model_flags.define()
model_flags.define_sentences()
model_flags.define_devices()
corpus_flags.define(
    default="the corpus that the model was trained on",
    several="to score the first that has dev and test text",
)
for module in (model_flags, corpus_flags):
    flags.adopt_module_key_flags(module)
flags.DEFINE_list(
    "splits", None, "Which splits to score. Default: all but train."
)
flags.DEFINE_string(
    "json",
    None,
    "Write the scores to this file as JSON; - prints them, and the text on "
    "stderr.",
)
flags.DEFINE_string(
    "report",
    None,
    "Write an evaluation card to REPORT.md and REPORT.json: the scores, and "
    "the data, settings, versions and training that they depend on.",
)


def main(_: list[str]) -> int:
    files.require_folder_of(FLAGS.json)
    files.require_folder_of(FLAGS.report, ".md")
    card = FLAGS.report and f"{FLAGS.report}.json"
    files.require_apart([FLAGS.json, card], corpus_flags.given_files())
    settings_file.require_no_output_in(FLAGS.model_dir, FLAGS.json, card)
    hparams = search_options.checked_hparams(**model_flags.checked())
    corpus, held_out = corpus_flags.read_scored(
        settings_file.corpus_of(FLAGS.model_dir), hparams.task, FLAGS.splits
    )
    cli.load_tensorflow(in_parts=not FLAGS.xla)
    model_flags.settle_precision(hparams)
    from t2t_lite import tasks
    from t2t_lite.evaluation.card import make_card
    from t2t_lite.evaluation.report import evaluate
    from t2t_lite.storage.model_directory import ModelDirectory

    options = {name: FLAGS[name].value for name in ("sentences", "devices")}
    translator = tasks.open_model(**model_flags.of_translator(), **options)
    task = tasks.task_of(hparams)
    splits = {
        name: [task.check_pair(*pair) for pair in pairs]
        for name, pairs in held_out.items()
    }
    score = functools.partial(
        task.scores, language=corpus.target_language, with_margins=True
    )
    encode = functools.partial(task.encode_targets, translator.vocabulary)
    watch, checks = terminal.with_bar, corpus.read_checks()
    report = evaluate(translator, splits, score, encode, watch, checks)
    print(report.as_text(), file=files.stream_beside(FLAGS.json))
    if FLAGS.json:
        with files.output_file(FLAGS.json) as file:
            file.write(report.as_json())
    if FLAGS.report:
        directory = ModelDirectory(FLAGS.model_dir)
        make_card(report, directory, translator).write(FLAGS.report)
    return 0
