"""What Marian's tokenizer gives, and how an import that is none is refused."""

import pytest
import sentencepiece

from t2t_lite.errors import InputError
from t2t_lite.formats import marian


def marian_ids(model, lines):
    """Returns the ids that Marian uses for lines: SentencePiece's and eos."""
    processor = sentencepiece.SentencePieceProcessor()
    processor.LoadFromSerializedProto(model)
    eos = processor.eos_id()
    return [[*ids, eos] for ids in processor.encode(list(lines))]


def assert_refused(path, *says):
    with pytest.raises(InputError) as error:
        marian.read(path)
    line = str(error.value)
    assert "\n" not in line
    for each in says:
        assert each in line
