"""Translates lines as a Translator does, with CTranslate2's search.

Lines are split, ordered and joined as usual. What differs is the search:

- CTranslate2 keeps only those ends that rank among the W best continuations of
  a step; ours keeps those among the 2 W best. So a few texts differ; ours then
  score higher.
- With a length penalty above 0, hypotheses that a search without one has found
  are ranked by the paper's formula. Ours applies it in the search itself.
- A beam of width 1 takes the likeliest token and never looks back.
- A source with no token but EOS has no translation.
- Nothing is sampled. Words cannot be suppressed, but tokens can. The text of a
  prefix is tokenized by itself, without the space at its end: if it cuts a
  word, an odd one follows.

`ctranslate2_conversion` keeps what is converted in the model directory.
"""

import dataclasses
import hashlib
import os
from typing import Any, NamedTuple

from t2t_lite import files
from t2t_lite.decoding.engine import Engine
from t2t_lite.decoding.search_options import SearchOptions
from t2t_lite.errors import InputError, require
from t2t_lite.formats import ctranslate2
from t2t_lite.formats.ctranslate2_conversion import Conversion
from t2t_lite.formats.ctranslate2_search import CTranslate2Search, find_workers
from t2t_lite.hparams import HParams
from t2t_lite.storage.model_directory import ModelDirectory
from t2t_lite.text.sentences import Splitting
from t2t_lite.text.vocabulary import Vocabulary
from t2t_lite.translation.line_translator import LineTranslator


class CTranslate2Translator(LineTranslator):
    """A LineTranslator whose search is CTranslate2's.

    Args:
        engine: Engine.
        vocabulary: Vocabulary.
        options: SearchOptions.
        splitting: Splitting.
        weights_name: what tells these weights, and how they are stored, from
            others.
    """

    _accepted = "a str or a list of str"
    _takes_tensors = False  # A graph cannot hold CTranslate2.

    def __init__(
        self,
        engine: Engine,
        vocabulary: Vocabulary,
        options: SearchOptions,
        splitting: Splitting,
        weights_name: str,
    ):
        super().__init__(
            engine, vocabulary, options=options, splitting=splitting
        )
        self._weights_name = weights_name

    def sha256(self) -> str:
        """Returns the hash of all that shapes an output, except the options."""
        parts = [self.vocabulary.sha256, self._splitting, self._weights_name]
        return hashlib.sha256(repr(parts).encode()).hexdigest()


def open_translator(
    model_dir: str | os.PathLike,
    checkpoint: str = "last",
    average_last: int = 1,
    precision: str = "float32",
    xla: bool | None = None,
    sentences: str = "auto",
    devices: str | int = 1,
    quantization: str | None = None,
    **options: Any,
) -> CTranslate2Translator:
    """Returns the translator of a model directory, converted if necessary.

    Args:
        model_dir: path of a model directory on this machine, or of a folder
            that `ctranslate2.write` wrote.
        checkpoint: "last", "best", "averaged", or the path of a checkpoint.
        average_last: int; above 1, the mean of that many of the last ones.
        precision: "float32"; CTranslate2's others are a `quantization`.
        xla: None or False.
        sentences: as for a Translator.
        devices: "all" GPUs of the machine (without any, its CPU), or how many.
        quantization: what the weights are stored and multiplied in: "int8",
            "int8_float32", "float16" or "bfloat16"; None for float32, or for
            what a folder has.
        options: what to change in the SearchOptions of the model's settings.

    Raises:
        InputError: ctranslate2 is not installed, it cannot run the model, the
            directory has no such model, or an option is wrong.
    """
    ctranslate2.load_library()
    _require_supported(model_dir, precision, xla)
    ctranslate2.require_quantization(quantization)
    if ctranslate2.is_written(model_dir):
        require(
            "a folder for CTranslate2 holds one model: checkpoint must be last "
            "and average_last 1",
            (checkpoint, average_last) == ("last", 1),
            checkpoint=checkpoint,
            average_last=average_last,
        )
        return _open_folder(
            model_dir,
            sentences,
            devices=devices,
            quantization=quantization,
            **options,
        )
    directory = ModelDirectory(model_dir)
    directory.require_task("translation")
    settings = directory.settings()
    ctranslate2.require_supported(settings.hparams)
    search_options = _supported_options(settings.hparams, **options)
    splitting = settings.splitting(sentences)
    workers = find_workers(devices, quantization)
    conversion = Conversion(
        directory=directory,
        hparams=dataclasses.replace(
            settings.hparams, max_extra_length=search_options.max_extra_length
        ),
        vocabulary=directory.vocabulary(),
        checkpoint=checkpoint,
        average_last=average_last,
        quantization=quantization,
    )
    with conversion.folder() as folder:
        try:
            library = workers.load(folder)
        except InputError as error:
            raise InputError(
                f"{error} (if the folder is damaged, delete it: it will be "
                "written again)"
            ) from None
    model = _Loaded(
        library=library,
        hparams=conversion.hparams,
        vocabulary=conversion.vocabulary,
        name=conversion.name,
        description=conversion.description,
    )
    return model.translator(search_options, splitting)


def _open_folder(
    folder: str | os.PathLike,
    sentences: str,
    devices: str | int,
    quantization: str | None,
    **options: Any,
) -> CTranslate2Translator:
    """Returns the translator of a folder that `ctranslate2.write` wrote.

    The arguments are those of `open_translator`.
    """
    folder = files.to_path(folder)
    metadata = ctranslate2.read_metadata(folder)
    hparams = metadata["hparams"]
    splitting = Splitting(**metadata.get("splitting", {})).override(
        sentences, hparams.max_length
    )
    search_options = _supported_options(hparams, **options)
    most = ctranslate2.num_positions(hparams) - hparams.max_length
    require(
        f"max_extra_length must be at most {most}: the exported folder has no "
        "positions for more",
        search_options.max_extra_length <= most
        or hparams.positions == "learned",
        max_extra_length=search_options.max_extra_length,
    )
    library = find_workers(devices, quantization).load(folder)
    weights_sha256 = files.sha256(folder / ctranslate2.MODEL)
    model = _Loaded(
        library=library,
        hparams=hparams,
        vocabulary=ctranslate2.load_vocabulary(folder),
        name=f"{weights_sha256}-{quantization}-{hparams}",
        description=str(folder),
    )
    return model.translator(search_options, splitting)


class _Loaded(NamedTuple):
    """A model that CTranslate2 has loaded."""

    library: Any  # ctranslate2.Translator
    hparams: HParams
    vocabulary: Vocabulary
    name: str  # what tells the weights, and how they are stored, from others
    description: str  # where the weights are from

    def translator(
        self, options: SearchOptions, splitting: Splitting
    ) -> CTranslate2Translator:
        """Returns the translator that searches with some options."""
        search = CTranslate2Search(
            library=self.library,
            vocabulary=self.vocabulary,
            hparams=self.hparams,
            options=options,
        )
        engine = Engine(
            search,
            self.hparams.max_length,
            self.description,
            translate_prefixed=search.translate_prefixed,
        )
        return CTranslate2Translator(
            engine,
            self.vocabulary,
            options=options,
            splitting=splitting,
            weights_name=self.name,
        )


def _supported_options(hparams: HParams, **options: Any) -> SearchOptions:
    """Returns the SearchOptions, all of which this engine can follow."""
    found = SearchOptions.from_hparams(
        hparams, CTranslate2Translator, **options
    )
    rule = (
        "CTranslate2 can suppress only tokens, not words: give suppress_pieces "
        "instead"
    )
    require(rule, not found.suppress, suppress=found.suppress)
    rule = (
        "alternatives are not available with the CTranslate2 engine: leave "
        "them out"
    )
    require(rule, not found.alternatives, alternatives=found.alternatives)
    rule = (
        "a glossary is not available with the CTranslate2 engine: leave it out"
    )
    require(rule, not found.glossary, terms=len(found.glossary))
    rule = "keep is not available with the CTranslate2 engine: leave it out"
    require(rule, not found.keep, keep=found.keep)
    rule = (
        "alignments are not available with the CTranslate2 engine: leave them "
        "out"
    )
    require(rule, not found.alignments, alignments=found.alignments)
    given = {name: options[name] for name in found.steering if "sample" in name}
    rule = (
        "sampling is not available with the CTranslate2 engine, whose samples "
        "depend on their batch: leave it out"
    )
    require(rule, not found.samples, **given)
    return found


def _require_supported(
    model_dir: str | os.PathLike, precision: str, xla: bool | None
) -> None:
    """Raises InputError if this engine cannot do what is asked for."""
    if files.is_remote(model_dir):
        raise InputError(
            f"CTranslate2 reads only local files: copy {model_dir} to this "
            "machine"
        )
    require(
        "CTranslate2 has no XLA: xla must be None or False",
        not xla,
        xla=xla,
    )
    require(
        "precision does not apply to the CTranslate2 engine: leave it at "
        "float32, and set quantization to one of "
        f"{', '.join(ctranslate2.QUANTIZATIONS)}",
        precision == "float32",
        precision=precision,
    )
