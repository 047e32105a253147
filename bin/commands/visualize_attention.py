"""Shows what every head attends to in a sentence and its translation.

--output writes one HTML page with all layers and heads. --png_prefix writes
PREFIX-matrix.png and PREFIX-lines.png, at 300 dots per inch, of the chosen
kind, layer and heads; the lines are those of the paper's Figures 3 to 5.
"""

from absl import flags

from t2t_lite import cli, files, model_flags
from t2t_lite.decoding import search_options
from t2t_lite.errors import InputError, require_extra, require_index
from t2t_lite.storage import settings_file

FLAGS = flags.FLAGS
model_flags.define(xla=False, has_auto_precision=False)
flags.adopt_module_key_flags(model_flags)
flags.DEFINE_string("sentence", None, "Required: the sentence to translate.")
flags.mark_flag_as_required("sentence")
flags.DEFINE_string(
    "translation", None, "A translation to show. Default: the model's."
)
flags.DEFINE_bool("words", False, "Join the pieces of each word.")
flags.DEFINE_string("output", None, "The HTML page to write.")
flags.DEFINE_string("png_prefix", None, "Start of the names of the pictures.")
flags.DEFINE_enum(
    "kind",
    "encoder_self",
    ["encoder_self", "decoder_self", "encoder_decoder"],
    "Which attention the pictures show, and the page shows first.",
)
flags.DEFINE_integer(
    "layer", None, "Which layer the pictures show, from 0. Default: the last."
)
flags.DEFINE_multi_integer(
    "head",
    None,
    "Which head the pictures show, from 0. Default: all.",
)
flags.DEFINE_string(
    "png_token", None, "Draw only the lines of this attending token."
)
cli.forbid_with(
    "translation",
    *model_flags.SEARCH,
    "xla",
    because=", which needs no search",
)
cli.allow_only_with("png_token", "png_prefix")


def main(_: list[str]) -> int:
    if FLAGS.output is None and FLAGS.png_prefix is None:
        raise InputError("give --output, --png_prefix, or both")
    files.require_writable(FLAGS.output)
    files.require_writable(FLAGS.png_prefix, "-matrix.png")
    if FLAGS.png_prefix is not None:
        require_extra("matplotlib", "figures", "leave out --png_prefix")
        pictures = [f"{FLAGS.png_prefix}-{n}.png" for n in ("matrix", "lines")]
        files.require_apart([FLAGS.output, *pictures])
    settings_file.require_no_output_in(FLAGS.model_dir, FLAGS.output)
    hparams = search_options.checked_hparams(
        **model_flags.checked(), trained_for="translation"
    )
    is_encoder = FLAGS.kind == "encoder_self"
    num_layers = hparams.num_layers if is_encoder else hparams.decoder_layers
    require_index(num_layers, layer=FLAGS.layer)
    for head in FLAGS.head or ():
        require_index(hparams.num_heads, head=head)
    cli.load_tensorflow()
    from t2t_lite.translation.line_translator import Translator
    from t2t_lite.visualization.figures import write_pictures
    from t2t_lite.visualization.maps import compute_maps, join_words, select
    from t2t_lite.visualization.page import render_page

    translator = Translator(**model_flags.translator_arguments())
    maps = compute_maps(translator, FLAGS.sentence, FLAGS.translation)
    maps = join_words(maps) if FLAGS.words else maps
    selection = select(
        maps,
        FLAGS.kind,
        layer=FLAGS.layer,
        heads=FLAGS.head,
        token=FLAGS.png_token,
    )
    if FLAGS.output is not None:
        with files.output_file(FLAGS.output) as file:
            file.write(render_page(maps, selection))
    if FLAGS.png_prefix is not None:
        write_pictures(FLAGS.png_prefix, maps, selection)
    return 0
