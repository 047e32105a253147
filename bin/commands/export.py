"""Writes a model for TF Serving, for CTranslate2 or for Hugging Face."""

from absl import flags, logging

from t2t_lite import cli, model_flags
from t2t_lite.decoding import search_options
from t2t_lite.formats import exporting
from t2t_lite.serving import checks

FLAGS = flags.FLAGS
model_flags.define(xla=False, has_auto_precision=False)
model_flags.define_sentences()
model_flags.define_serving()
flags.adopt_module_key_flags(model_flags)
flags.DEFINE_string(
    "export_dir",
    None,
    "Required: the folder to write numbered versions to; for formats other "
    "than saved_model, the new folder to write.",
)
flags.mark_flag_as_required("export_dir")
flags.DEFINE_enum(
    "format",
    "saved_model",
    ["saved_model", "ctranslate2", "hugging_face"],
    "What loads it: TensorFlow, with text in and text out; CTranslate2; or "
    "transformers' MarianMTModel.",
)
flags.DEFINE_enum(
    "quantization",
    None,
    exporting.QUANTIZATIONS,
    "Number format of the weights for CTranslate2 or Hugging Face. Default: "
    "float32.",
)
_CHECKED = ("export_dir", "quantization", *model_flags.SERVING)
_WEIGHTS = ("checkpoint", "average_last", "precision")
_SERVED = ("xla", "attention_layer", "attention_head")
cli.forbid_with(
    "format",
    *model_flags.SERVING,
    "sentences",
    "xla",
    "tokens_at_once",
    *search_options.STEERING,
)
cli.forbid_with("format", "precision", because=", which has --quantization")


def main(_: list[str]) -> int:
    hparams = search_options.checked_hparams(
        **model_flags.checked(), trained_for="translation"
    )
    if FLAGS.format != "saved_model":
        hparams = search_options.replaced(
            hparams, **model_flags.search_arguments()
        )
        target = {
            "format_name": FLAGS.format,
            "hparams": hparams,
            "folder": FLAGS.export_dir,
            "quantization": FLAGS.quantization,
        }
        exporting.require_possible(**target)
        cli.load_tensorflow()
        print(exporting.export(**target, **model_flags.chosen_weights()))
        return 0
    max_length = checks.checked_max_length(
        hparams, **{name: FLAGS[name].value for name in _CHECKED}
    )
    cli.load_tensorflow()
    logging.set_verbosity(logging.WARNING)  # Saving logs a lot.
    from t2t_lite.serving import opening
    from t2t_lite.serving.export import export
    from t2t_lite.storage.model_directory import ModelDirectory

    directory = ModelDirectory(FLAGS.model_dir)
    options = opening.serving_options(
        directory,
        search=model_flags.search_arguments(),
        sentences=FLAGS.sentences,
        max_length=max_length,
        **{n: FLAGS[n].value for n in _SERVED},
    )
    weights = {n: FLAGS[n].value for n in _WEIGHTS}
    print(export(directory, FLAGS.export_dir, options, **weights))
    return 0
