"""Scores given translations: how probable a model finds them.

Prints log p(target | source) in nats for each pair of lines, including the end
of the sentence, without a length penalty. With --tokens, prints a line of JSON
for each pair, which also has the log probability of each token. Lines are not
split into sentences.
"""

import functools

from absl import flags, logging

from t2t_lite import cli, files, model_flags, terminal
from t2t_lite.decoding import search_options
from t2t_lite.storage import settings_file
from t2t_lite_data import text_files

FLAGS = flags.FLAGS
model_flags.define_weights()
flags.adopt_module_key_flags(model_flags)
flags.DEFINE_string(
    "source", None, "Required: text file of the sources; may be .gz."
)
flags.DEFINE_string(
    "target",
    None,
    "Required: text file of the targets; line n is scored as the translation "
    "of line n of --source.",
)
flags.mark_flags_as_required(["source", "target"])
flags.DEFINE_string(
    "output",
    None,
    "File to write, compressed if it ends in .gz. Default: stdout, as with -.",
)
flags.DEFINE_bool("tokens", False, "Print JSON, with the score of each token.")


def main(_: list[str]) -> int:
    files.require_writable(FLAGS.output)
    files.require_apart([FLAGS.output], [FLAGS.source, FLAGS.target])
    settings_file.require_no_output_in(FLAGS.model_dir, FLAGS.output)
    hparams = search_options.checked_hparams(**model_flags.chosen_weights())
    lines, count = text_files.input_pairs(FLAGS.source, FLAGS.target)
    cli.load_tensorflow()
    from t2t_lite import tasks
    from t2t_lite.evaluation.pair_scores import score_pairs

    task = tasks.task_of(hparams)
    predictor = tasks.open_model(**model_flags.weights_and_precision())
    vocabulary = predictor.vocabulary
    encode = functools.partial(task.encode_targets, vocabulary)
    pairs = (task.check_pair(*pair) for pair in lines)
    scores = score_pairs(
        predictor.model, vocabulary, pairs, encode_targets=encode
    )
    with files.output_file(FLAGS.output) as output:
        shown = terminal.with_bar(scores, count, output)
        for n, score in enumerate(shown, start=1):
            if not score.log_probabilities:
                logging.warning("Pair %d is too long for this model.", n)
            text = score.as_json() if FLAGS.tokens else score.as_text()
            output.write(f"{text}\n")
    return 0
