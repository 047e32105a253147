"""Translates lines of text from a file, standard input or the terminal.

With a model that was trained to parse, a line is a sentence's words, with
single spaces between them, and its tree is printed.

Prints one line for each input line, in the same order. With --nbest=N above 1,
or --alternatives=N, prints N lines for each, as "line number ||| text |||
score". With --alignments, " ||| " and the word links follow each.
"""

from absl import flags

from t2t_lite import cli, engines, files, model_flags, terminal
from t2t_lite.decoding import partial_output
from t2t_lite.storage import settings_file
from t2t_lite_data import text_files

FLAGS = flags.FLAGS
model_flags.define(may_be_several=True)
model_flags.define_sentences()
model_flags.define_devices()
flags.adopt_module_key_flags(model_flags)
flags.DEFINE_string(
    "input", None, "Text file to read; may be .gz. Default: stdin, as with -."
)
flags.DEFINE_string(
    "output",
    None,
    "File to write, compressed if it ends in .gz. Default: stdout, as with -. "
    "An interrupted command leaves what is done in OUTPUT.partial, and goes on "
    "from there when it is run again.",
)
flags.DEFINE_string(
    "prefix_file",
    None,
    "Text file, may be .gz: line n is the beginning of the translation of line "
    "n, and may end within a word; a blank line means none.",
)
flags.DEFINE_string(
    "glossary",
    None,
    "Text file, may be .gz, with a term, a tab and its translation on each "
    "line. If an input line has the term, its translation will have the term's "
    "translation.",
)
flags.DEFINE_list(
    "keep",
    None,
    "What to copy unchanged into the translation: tags, urls (and e-mail "
    "addresses), placeholders, quantities; comma-separated.",
)
flags.DEFINE_bool(
    "alignments",
    False,
    "Print after each translation which source words its words correspond to, "
    "such as 0-0 1-2: word numbers in the source and in the translation, from "
    "0.",
)
flags.DEFINE_integer("nbest", 1, "Translations per line.", lower_bound=1)
flags.DEFINE_integer(
    "alternatives",
    0,
    "How many translations per line, which differ in their first word, or in "
    "the next word after the prefix.",
)
flags.DEFINE_bool("scores", False, "Print a score and a tab before each line.")
flags.DEFINE_integer(
    "batch_lines",
    1000,
    "How many lines are sorted by length and translated together; 1 on a "
    "terminal.",
    lower_bound=1,
)
flags.DEFINE_enum(
    "engine",
    "tensorflow",
    engines.NAMES,
    "The engine that searches. CTranslate2 takes a model directory, which it "
    "converts once, or a folder exported for it.",
)
flags.DEFINE_enum(
    "quantization",
    None,
    ["int8", "int8_float32", "float16", "bfloat16"],
    "Number format of CTranslate2's weights. Default: float32, or that of an "
    "exported folder.",
)
cli.forbid_with("engine", "xla")
cli.forbid_with("engine", "precision", because=", which has --quantization")
cli.allow_only_with("quantization", "engine", "ctranslate2")
cli.allow_only_with("prefix_file", "input")
_BECAUSE = ", which prints the score of each"
cli.forbid_with("nbest", "scores", because=_BECAUSE)
cli.forbid_with("alternatives", "scores", because=_BECAUSE)
_ASKED = ("nbest", "alternatives", "keep", "alignments")
_OPTIONS = ("quantization", "sentences", "devices")
# In addition to the search's own options.
_SHAPING = ("engine", "precision", "quantization", "xla", "sentences", "scores")


def main(_: list[str]) -> int:
    files.require_writable(FLAGS.output)
    partial = partial_output.partial_path(FLAGS.output)
    inputs = FLAGS.input, FLAGS.prefix_file
    files.require_apart([FLAGS.output, partial], (*inputs, FLAGS.glossary))
    settings_file.require_no_output_in(FLAGS.model_dir, FLAGS.output)
    search = {name: FLAGS[name].value for name in _ASKED}
    search["glossary"] = text_files.glossary(FLAGS.glossary)
    checked = model_flags.checked() | search
    hparams = engines.checked_hparams(FLAGS.engine, **checked)
    is_typed = terminal.is_typed(FLAGS.input)
    window = 1 if is_typed else FLAGS.batch_lines
    lines, count = (
        (terminal.typed_lines(), None)
        if is_typed
        else text_files.input_lines(FLAGS.input)
    )
    prefixes = text_files.prefix_lines(FLAGS.prefix_file, count)
    cli.load_tensorflow(in_parts=not FLAGS.xla)
    header = partial_output.read_header(partial)
    model_flags.settle_precision(hparams, header.get("precision"))
    from t2t_lite.decoding.line_predictor import as_lines

    sizing = partial_output.find_sizing(header, FLAGS.engine)
    search |= model_flags.translator_arguments() | {"hardware": sizing.hardware}
    options = {name: FLAGS[name].value for name in _OPTIONS}
    translator = engines.open_model(FLAGS.engine, **options, **search)
    options = {name: FLAGS[name].value for name in _SHAPING} | sizing.options
    with partial_output.open_output(
        FLAGS.output, inputs, translator, window=window, options=options
    ) as output:
        first = output.first_line
        lines, prefixes = map(output.rest, (lines, prefixes))
        results = translator.stream(lines, window, first, prefixes=prefixes)
        if not is_typed:
            results = terminal.with_bar(results, count, output, done=first - 1)
        for n, found in enumerate(results, start=first):
            number = n if FLAGS.nbest > 1 or FLAGS.alternatives else None
            output.write(as_lines(found, number, FLAGS.scores))
    return 0
