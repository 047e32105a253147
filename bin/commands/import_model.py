"""Imports a Marian or Hugging Face model, such as one of OPUS-MT.

It writes a model directory for all other commands: translate, evaluate,
export, and train with --warm_start_from.
"""

from absl import flags

from t2t_lite import cli, files

FLAGS = flags.FLAGS
flags.DEFINE_string(
    "from",
    None,
    "Required: a Marian model's folder or archive (decoder.yml, .npz), or a "
    "Hugging Face model's folder (config.json, model.safetensors).",
)
flags.DEFINE_string(
    "model_dir", None, "Required: the folder to write.", allow_overwrite=False
)
flags.mark_flags_as_required(["from", "model_dir"])


def main(_: list[str]) -> int:
    files.require_new_folder(FLAGS.model_dir)
    from t2t_lite.formats import reading

    model = reading.read(FLAGS["from"].value)
    cli.load_tensorflow()
    from t2t_lite.formats import imported

    imported.write(model, FLAGS.model_dir)
    print("\n".join([*model.found, f"Written to {FLAGS.model_dir}."]))
    return 0
