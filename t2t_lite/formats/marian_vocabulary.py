"""The vocabularies of Marian's models, as SentencePiece models of this package.

They are SentencePiece models whose ids are the model's, or maps of pieces to
ids with the SentencePiece models source.spm and target.spm next to them.
"""

import pathlib
from collections.abc import Sequence
from typing import Any, NamedTuple

import sentencepiece

from t2t_lite import files
from t2t_lite.errors import InputError
from t2t_lite.formats import sentence_pieces

_MAPS = (".json", ".yml", ".yaml")


class Side(NamedTuple):
    """The vocabulary of one side."""

    model: bytes  # SentencePiece's
    pieces: list[str]  # by Marian's ids
    eos: int
    unk: int
    name: str  # of its file

    @property
    def order(self) -> list[int]:
        """Marian's ids in the order of this package's, from EOS on."""
        first = [self.eos, self.unk]
        return first + [i for i in range(len(self.pieces)) if i not in first]

    def cut(self, num_rows: int | None) -> "Side":
        """Returns the vocabulary without ids that the model has no row for.

        Marian treats their pieces as <unk>.
        """
        is_map = not self.name.endswith((".spm", ".model"))
        if not is_map or num_rows is None:
            return self
        return self._replace(pieces=self.pieces[:num_rows])

    def reordered(self) -> bytes:
        """Returns the SentencePiece model with the ids of this package."""
        pieces = [self.pieces[i] for i in self.order[1:]]
        return sentence_pieces.reordered(self.model, pieces)


def read_side(path: pathlib.Path, side: str) -> Side:
    """Returns the vocabulary of "source" or "target"."""
    if path.suffix == ".fsv":
        raise InputError(
            f"factored vocabularies cannot be imported; received {path.name}"
        )
    if path.suffix in (".spm", ".model"):
        model = path.read_bytes()
        processor = _processor(model, path)
        num_pieces = processor.GetPieceSize()
        pieces = [processor.id_to_piece(i) for i in range(num_pieces)]
        eos, unk = processor.eos_id(), processor.unk_id()
        if eos < 0:
            raise InputError(
                f"a vocabulary must have a piece </s>; {path.name} has none, "
                "so no Marian model can have been trained with it"
            )
        return Side(
            model=model, pieces=pieces, eos=eos, unk=unk, name=path.name
        )
    model = _model_beside(path, side)
    pieces = _piece_list(path)
    eos = _special(pieces, 0, name="</s>", old_name="eos", path=path)
    unk = _special(pieces, 1, name="<unk>", old_name="UNK", path=path)
    pieces[eos], pieces[unk] = "</s>", "<unk>"
    return Side(model=model, pieces=pieces, eos=eos, unk=unk, name=path.name)


def _processor(model: bytes, path: pathlib.Path):
    processor = sentencepiece.SentencePieceProcessor()
    try:
        processor.LoadFromSerializedProto(model)
    except (RuntimeError, UnicodeDecodeError):
        raise InputError(f"{path} is not a SentencePiece model") from None
    return processor


def _model_beside(vocabulary: pathlib.Path, side: str) -> bytes:
    """Returns the SentencePiece model of a side, next to a map of its ids."""
    path = vocabulary.with_name(f"{side}.spm")
    if not path.exists():
        has_bpe = vocabulary.with_name(f"{side}.bpe").exists()
        received = f"{side}.bpe, of subword-nmt" if has_bpe else "none"
        raise InputError(
            f"beside {vocabulary.name} there must be {side}.spm, the "
            f"SentencePiece model that cuts text into pieces; received "
            f"{received}"
        )
    model = path.read_bytes()
    _processor(model, path)
    return model


def _piece_list(path: pathlib.Path) -> list[str]:
    """Returns the pieces of vocab.yml, vocab.json or lines of text, by id."""
    is_map = path.suffix in _MAPS
    try:
        text = path.read_bytes().decode()
        ids = _load_map(text, path.suffix) if is_map else {}
        by_id = {int(i): str(piece) for piece, i in ids.items()}
    except (ValueError, TypeError, AttributeError, RecursionError):
        raise InputError(
            f"{path.name} must map pieces to ids; this one is damaged: restore "
            "it from a backup"
        ) from None
    if not is_map:
        return text.removesuffix("\n").split("\n")
    if len(by_id) != len(ids) or set(by_id) != set(range(len(by_id))):
        raise InputError(
            f"{path.name} must give each piece an id of its own, from 0 to "
            f"{len(ids) - 1}, without gaps; this one does not"
        )
    return [by_id[i] for i in range(len(by_id))]


def _load_map(text: str, suffix: str) -> Any:
    """Returns what JSON or YAML says; every scalar of YAML is a str.

    Raises:
        ValueError: the text is neither.
    """
    import yaml

    if suffix == ".json":
        return files.parse_json(text)
    # It reads every scalar as a str, as Marian does: "no" is a piece.
    loader = getattr(yaml, "CBaseLoader", yaml.BaseLoader)
    try:
        return yaml.load(text, Loader=loader)
    except yaml.YAMLError as error:
        raise ValueError(error) from None


def _special(
    pieces: Sequence[str],
    usual: int,
    name: str,
    old_name: str,
    path: pathlib.Path,
) -> int:
    """Returns the id of "</s>" or "<unk>"; Nematus files have old names."""
    is_old = path.suffix in _MAPS and len(pieces) > usual
    if is_old and pieces[usual] in ("", old_name):
        return usual
    if name not in pieces:
        raise InputError(
            f"a vocabulary must have a piece {name}; {path.name} has none"
        )
    return pieces.index(name)
