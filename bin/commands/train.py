"""Trains a Transformer; the same command resumes an interrupted run.

Without flags it trains transformer_tiny on the embedded English-German corpus;
with only --model_dir it resumes with the settings and the text found there.
"""

from absl import flags

from t2t_lite import cli, hardware, hparams, tasks
from t2t_lite.training import options, resuming, workers
from t2t_lite_data import corpus_flags

_DEFAULT_PRESET = "transformer_tiny"

FLAGS = flags.FLAGS
corpus_flags.define()
corpus_flags.define_weights()
corpus_flags.define_alignments("train")
flags.adopt_module_key_flags(corpus_flags)
flags.DEFINE_string(
    "hparams",
    None,
    f"The preset to train: {', '.join(hparams.PRESETS)}. Default: the settings "
    "that --model_dir was begun with, or those of the model directory given as "
    f"--warm_start_from, or else {_DEFAULT_PRESET}.",
)
flags.DEFINE_multi_string("override", [], "Replace a setting: field=value.")
flags.DEFINE_integer(
    "steps", None, "How many updates to do in all. Default: the preset's."
)
flags.DEFINE_string(
    "model_dir",
    None,
    "Where to keep the model. Default: runs/<corpus>-<preset>.",
    allow_overwrite=False,
)
flags.DEFINE_string(
    "vocabulary",
    None,
    "A SentencePiece model to use. Default: one is learned from the text.",
)
flags.DEFINE_string(
    "cache_dir",
    None,
    "A folder of tokenized text that runs share. Default: the model_dir.",
)
flags.DEFINE_enum(
    "strategy",
    "auto",
    ["auto", "one_device", "mirrored", "multi_worker"],
    "Which devices train: one, all of this machine, or those of the machines "
    "that TF_CONFIG or SLURM names.",
)
flags.DEFINE_float(
    "worker_timeout_minutes",
    None,
    "How long several workers wait for each other before the first update. "
    "Default: 10.",
)
flags.DEFINE_enum(
    "precision",
    "float32",
    [*hardware.PRECISIONS, "auto"],
    "Precision of the computation; weights, softmax and loss stay float32. "
    "auto: bfloat16 if the machine is faster with it; a resumed run keeps that "
    "choice.",
)
flags.DEFINE_bool("xla", False, "Compile forward and backward pass with XLA.")
flags.DEFINE_integer(
    "micro_batch_tokens",
    None,
    "How many tokens of each side a device takes at once. Default: as many as "
    "fit its memory.",
)
flags.DEFINE_float(
    "memory_limit_gib",
    None,
    "GiB of memory that a device may use for updates and scores. Default: what "
    "is free.",
)
flags.DEFINE_float(
    "save_every_minutes",
    None,
    "Minutes between two checkpoints. Default: 10, unless the preset sets "
    "save_every_steps.",
)
flags.DEFINE_integer(
    "save_every_steps",
    None,
    "Updates between two checkpoints, in place of minutes. Default: the "
    "preset's, if it has them.",
)
flags.DEFINE_integer(
    "keep_last",
    None,
    "How many checkpoints to keep. Default: as many as are averaged, at "
    "least 2.",
)
flags.DEFINE_integer(
    "evaluate_every_steps",
    None,
    "Updates between two evaluations on dev. Default: a fifth of all.",
)
flags.DEFINE_integer(
    "patience",
    None,
    "Stop after this many evaluations without a better score on dev.",
)
flags.DEFINE_string(
    "warm_start_from",
    None,
    "A model directory or checkpoint whose weights to start from.",
)
flags.DEFINE_float(
    "sustained_tflops",
    None,
    "TFLOPS that one device sustains, to estimate the cost by time as the "
    "paper does (K80 2.8, K40 3.7, M40 6.0, P100 9.5).",
)
flags.DEFINE_enum(
    "on_divergence",
    "stop",
    ["stop", "skip"],
    "What to do once the loss or a gradient is not finite: stop, or go back to "
    "the last checkpoint and skip the batches since.",
)
flags.DEFINE_float(
    "divergence_factor",
    None,
    "Also treat a loss above this many times its running mean as a divergence.",
)
flags.DEFINE_integer(
    "max_skips",
    3,
    "How many times a run may skip batches before it stops anyway.",
)
flags.DEFINE_float(
    "hang_minutes",
    None,
    "End the process, with status 1 and the stacks of its threads, if no "
    "update completes in this many minutes. Evaluations on dev are not "
    "counted.",
)
flags.DEFINE_bool(
    "preflight",
    False,
    "Train nothing: try each shape of batch, and print what the run will take.",
)
cli.forbid_with(
    "save_every_steps", "save_every_minutes", "override=save_every_steps"
)
cli.forbid_with("save_every_minutes", "override=save_every_steps")
cli.forbid_with("steps", "override=steps")
cli.forbid_with("preflight", "worker_timeout_minutes")
cli.allow_only_with("max_skips", "on_divergence", "skip")
cli.forbid_with(
    "vocabulary", "override=vocabulary_size", "override=vocabulary_type"
)


def main(_: list[str]) -> int:
    steps = [] if FLAGS.steps is None else [f"steps={FLAGS.steps}"]
    run_options = options.RunOptions.from_flags(FLAGS.flag_values_dict())
    if cli.names_url() and not FLAGS.preflight:  # TensorFlow reads URLs.
        workers.join_cluster(run_options)
    run_options.require_files()
    previous = resuming.read_previous_run(
        FLAGS.model_dir, FLAGS.warm_start_from
    )
    preset = FLAGS.hparams or (None if previous.hparams else _DEFAULT_PRESET)
    base = hparams.preset(preset) if preset else previous.hparams
    settings = hparams.override(base, [*FLAGS.override, *steps])
    names = corpus_flags.flags_of_run(previous.corpus)
    corpus = corpus_flags.find_corpus(names)
    corpus_flags.require_trainable(corpus, settings.task)
    run_options.require_splits(corpus.splits)
    tasks.task_of(settings)  # Refuses settings that the task cannot have.
    text = corpus_flags.text_of_run(corpus, names, settings.guided_alignment)
    if not cli.names_url() and not FLAGS.preflight:
        workers.join_cluster(run_options)  # If there are others.
    cli.load_tensorflow(in_parts=run_options.in_parts, for_training=True)
    from t2t_lite.training import run, training_text

    default_dir = f"runs/{corpus.name}-{preset or 'fine_tuned'}"
    arguments = {
        "model_dir": FLAGS.model_dir or default_dir,
        "hparams": settings,
        "text": training_text.TrainingText(**text),
        "options": run_options,
    }
    if FLAGS.preflight:
        print(run.preflight(**arguments))
        return 0
    result = run.train(**arguments)
    if result.report is not None:
        print(result.report)
    return cli.signal_status(result.stop_signal)
