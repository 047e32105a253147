"""Serves a model on this machine: a page to try it, and a REST API.

The API is TensorFlow Serving's. Prints the address of the page, which only
programs on this machine can reach. For production, serve what bin/export writes
with TensorFlow Serving.
"""

from absl import flags

from t2t_lite import cli, model_flags
from t2t_lite.decoding import search_options
from t2t_lite.errors import require_extra, require_positive
from t2t_lite.serving import checks

FLAGS = flags.FLAGS
model_flags.define(xla=False, has_auto_precision=False, is_required=False)
model_flags.define_sentences()
model_flags.define_serving()
flags.adopt_module_key_flags(model_flags)
flags.DEFINE_string(
    "export_dir",
    None,
    "Serve the newest version of this export, in place of a model directory.",
)
flags.DEFINE_string(
    "name", None, "Name of the model. Default: that of its folder."
)
flags.DEFINE_integer("port", 8501, "Port to listen on; 0 for any free one.")
flags.DEFINE_float(
    "timeout_seconds",
    60,
    "How long a request may take, and how long Ctrl-C waits for requests in "
    "progress.",
)
cli.require_one("model_dir", "export_dir")
cli.forbid_with(
    "export_dir",
    "checkpoint",
    "average_last",
    "precision",
    "xla",
    "sentences",
    *model_flags.SEARCH,
    *model_flags.SERVING,
)
_SERVED = ("xla", "attention_layer", "attention_head")


def main(_: list[str]) -> int:
    require_extra("aiohttp", "serve")
    require_positive(**{"--timeout_seconds": FLAGS.timeout_seconds})
    name = checks.model_name(FLAGS.name, FLAGS.model_dir or FLAGS.export_dir)
    if FLAGS.export_dir:
        path = checks.newest_version(FLAGS.export_dir)
    else:
        max_length = checks.served_max_length(
            search_options.checked_hparams(
                **model_flags.checked(), trained_for="translation"
            ),
            **{n: FLAGS[n].value for n in model_flags.SERVING},
        )
    bound = checks.bound_socket(FLAGS.port)
    cli.load_tensorflow(in_parts=not FLAGS.xla)
    from t2t_lite.serving import opening
    from t2t_lite.serving.server import Server

    if FLAGS.export_dir:
        opened = opening.open_export(path)
    else:
        opened = opening.open_directory(
            **model_flags.weights_and_precision(),
            search=model_flags.search_arguments(),
            sentences=FLAGS.sentences,
            max_length=max_length,
            **{n: FLAGS[n].value for n in _SERVED},
        )
    Server(name, opened, FLAGS.timeout_seconds).run(bound)
    return 0
