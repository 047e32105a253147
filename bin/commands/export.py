"""Writes a SavedModel for TF Serving: text in, text out."""

from absl import flags, logging

from t2t_lite import cli
from t2t_lite.decoding import search_options
from t2t_lite.decoding.search_options import SearchOptions
from t2t_lite.errors import require_extra
from t2t_lite.serving import checks

FLAGS = flags.FLAGS
cli.define_model_flags(xla=False, has_auto_precision=False)
cli.define_sentences_flag()
flags.adopt_module_key_flags(cli)
flags.DEFINE_string(
    "export_dir", None, "Required: the folder to write numbered versions to."
)
flags.mark_flag_as_required("export_dir")
flags.DEFINE_integer(
    "max_length",
    None,
    "Most tokens of a source, or of a sentence of it; a longer one is "
    "truncated. Default: the model's.",
)
flags.DEFINE_integer(
    "attention_layer",
    None,
    "Which decoder layer's attention translate_aligned returns, from 0. "
    "Default: the last.",
)
flags.DEFINE_integer(
    "attention_head",
    None,
    "Which head's attention translate_aligned returns, from 0. Default: the "
    "mean of all heads.",
)


def main(_: list[str]) -> int:
    require_extra("tensorflow_serving", "serving")
    checks.require_folder_of_versions(FLAGS.export_dir)
    hparams = search_options.checked_hparams(
        FLAGS.model_dir, **cli.search_flags()
    )
    max_length = (
        hparams.max_length if FLAGS.max_length is None else FLAGS.max_length
    )
    checks.require_parts(
        hparams, max_length, FLAGS.attention_layer, FLAGS.attention_head
    )
    cli.load_tensorflow()
    logging.set_verbosity(logging.WARNING)  # Saving logs a lot.
    from t2t_lite.serving.export import export
    from t2t_lite.serving.signatures import ServingOptions
    from t2t_lite.storage.model_directory import ModelDirectory

    directory = ModelDirectory(FLAGS.model_dir)
    options = ServingOptions(
        SearchOptions.from_hparams(hparams, **cli.search_flags()),
        max_length,
        xla=FLAGS.xla,
        attention_layer=FLAGS.attention_layer,
        attention_head=FLAGS.attention_head,
        splitting=directory.settings().splitting(FLAGS.sentences),
    )
    path = export(
        directory,
        FLAGS.export_dir,
        options,
        checkpoint=FLAGS.checkpoint,
        average_last=FLAGS.average_last,
        precision=FLAGS.precision,
    )
    print(path)
    return 0
