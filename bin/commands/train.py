"""Trains a Transformer, or goes on where the last checkpoint was.

Without flags it trains transformer_tiny on the embedded English-German corpus.
"""

import os

from absl import flags

from t2t_lite import cli, hparams, tasks
from t2t_lite_data import corpus_flags

FLAGS = flags.FLAGS
corpus_flags.define()
flags.adopt_module_key_flags(corpus_flags)
flags.DEFINE_string(
    "hparams", "transformer_tiny", f"A preset: {', '.join(hparams.PRESETS)}."
)
flags.DEFINE_multi_string(
    "override", [], "field=value of the preset to replace; may be repeated."
)
flags.DEFINE_integer("steps", None, "Updates in all; those of the preset.")
flags.DEFINE_string("model_dir", None, "Default: runs/<corpus>-<preset>.")
flags.DEFINE_string("vocabulary", None, "A SentencePiece model to use.")
flags.DEFINE_string(
    "cache_dir", None, "Of tokens, for runs to share; default: the model_dir."
)
flags.DEFINE_enum(
    "strategy",
    "auto",
    ["auto", "one_device", "mirrored", "multi_worker"],
    "Which devices; multi_worker reads TF_CONFIG.",
)
flags.DEFINE_enum(
    "precision",
    "float32",
    ["float32", "bfloat16", "float16"],
    "Of the computation; weights, softmax and loss are float32.",
)
flags.DEFINE_bool("xla", False, "Compile the passes with XLA.")
flags.DEFINE_integer(
    "micro_batch_tokens",
    None,
    "Tokens of each side that a device takes at once; default: what fits.",
)
flags.DEFINE_float("save_every_minutes", 10.0, "Between two checkpoints.")
flags.DEFINE_integer("save_every_steps", None, "Instead of minutes.")
flags.DEFINE_integer(
    "keep_last",
    None,
    "Checkpoints to keep; default: as many as are averaged, at least 2.",
)
flags.DEFINE_integer(
    "evaluate_every_steps", None, "On dev; default: five times in a run."
)
flags.DEFINE_integer(
    "patience", None, "Stop after so many evaluations without a better score."
)
flags.DEFINE_string(
    "warm_start_from", None, "A model directory or checkpoint to begin from."
)
flags.DEFINE_float(
    "sustained_tflops",
    None,
    "Of one device: the cost is estimated by time too, as the paper does "
    "(K80 2.8, K40 3.7, M40 6.0, P100 9.5).",
)


def main(_):
    steps = [] if FLAGS.steps is None else [f"steps={FLAGS.steps}"]
    settings = hparams.override(
        hparams.preset(FLAGS.hparams), [*FLAGS.override, *steps]
    )
    names = corpus_flags.given()
    corpus = corpus_flags.corpus(names)
    corpus_flags.require_task(corpus, settings.task)
    tasks.task_of(settings)  # Refuses settings that the task cannot have.
    is_one_device = FLAGS.strategy == "one_device" or (
        FLAGS.strategy == "auto" and not os.environ.get("TF_CONFIG")
    )
    cli.load_tensorflow(num_parts=2 if is_one_device and not FLAGS.xla else 1)
    from t2t_lite.training import options, preparation, run

    result = run.train(
        FLAGS.model_dir or f"runs/{corpus.name}-{FLAGS.hparams}",
        settings,
        preparation.TrainingText(names, corpus_flags.readers(corpus)),
        options.RunOptions.from_flags(FLAGS.flag_values_dict()),
    )
    if result.report is not None:
        print(result.report)
    return cli.status_of_signal(result.stop_signal)
