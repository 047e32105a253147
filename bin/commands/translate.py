"""Translates lines of text: a file, standard input, or what you type.

With a model that was trained to parse, a line is a sentence's words, separated
by spaces, and what comes out is its tree.

One line comes out for each line that goes in, in the same order. With
--nbest=N above 1, N lines come out, each "line number ||| text ||| score".
"""

import sys

from absl import flags

from t2t_lite import cli, files
from t2t_lite_data import text_files

FLAGS = flags.FLAGS
cli.define_model_flags()
flags.adopt_module_key_flags(cli)
flags.DEFINE_string("input", None, "A text file or .gz; default: stdin.")
flags.DEFINE_string("output", None, "Where to write; default: stdout.")
flags.DEFINE_integer("nbest", 1, "Translations of each line.", lower_bound=1)
flags.DEFINE_bool("scores", False, "Put the score and a tab before each line.")
flags.DEFINE_integer(
    "batch_lines",
    1000,
    "Lines sorted by length and translated together; 1 on a terminal.",
    lower_bound=1,
)


def main(_):
    is_typed = FLAGS.input is None and sys.stdin.isatty()
    lines_at_once = 1 if is_typed else FLAGS.batch_lines
    lines = text_files.lines_or_standard_input(FLAGS.input)
    cli.load_tensorflow(num_parts=1 if FLAGS.xla else 2)
    import tqdm

    from t2t_lite import tasks
    from t2t_lite.decoding.line_predictor import as_lines

    translator = tasks.open_model(**cli.model_flags(), nbest=FLAGS.nbest)
    results = translator.stream(lines, lines_at_once)
    quiet = is_typed or not sys.stderr.isatty()
    with files.output_file(FLAGS.output) as output:
        for n, found in enumerate(tqdm.tqdm(results, disable=quiet), start=1):
            number = n if FLAGS.nbest > 1 else None
            output.write(as_lines(found, number, FLAGS.scores))
    return 0
