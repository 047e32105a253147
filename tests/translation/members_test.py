"""Models that cannot translate together are refused."""

import shutil

import edited_settings
import pytest
from paths import ROOT
from tiny_translator import WORDS, learn_vocabulary, write_model

from t2t_lite import Translator
from t2t_lite.errors import InputError
from t2t_lite.text import learning
from t2t_lite.translation.members import members_of, require_together

GOLDEN = ROOT / "tests" / "golden" / "0.1.0"
VOCABULARY = learn_vocabulary()


def test_models_of_other_vocabularies_are_refused(directories, tmp_path):
    lines = [" ".join(reversed(WORDS))] * 3 + ["."]
    vocabulary = learning.learn(lines, "unigram", VOCABULARY.size)
    other = write_model(tmp_path / "other", vocabulary).path
    with pytest.raises(InputError, match="have different vocabularies: models"):
        Translator([directories[0], other])


@pytest.mark.parametrize(
    ("checkpoints", "message"),
    [
        (["last"] * 3, "give one checkpoint per model directory, or several"),
        ([], "give one checkpoint per"),
        ("a/checkpoints/step-1", "a single checkpoint must be last, best or"),
    ],
)
def test_checkpoints_that_do_not_pair_are_refused(
    directories, checkpoints, message
):
    with pytest.raises(InputError, match=message):
        Translator(directories, checkpoints)


def test_a_model_that_is_given_twice_is_refused(directories, tmp_path):
    (tmp_path / "link").symlink_to(directories[0])
    for other in (directories[0], tmp_path / "link"):
        with pytest.raises(InputError, match="is given twice with the checkp"):
            Translator([directories[0], other])
    with pytest.raises(
        InputError, match="given twice with the checkpoint last"
    ):
        Translator(directories[0], ["last", "last"])


@pytest.mark.parametrize(
    ("name", "value"), [("source_language", "de"), ("language_tokens", True)]
)
def test_models_of_other_languages_are_refused(
    directories, tmp_path, name, value
):
    members = members_of(
        [shutil.copytree(each, tmp_path / each.name) for each in directories]
    )

    def set_both(*values):
        for member, value in zip(members, values, strict=True):
            edited_settings.edit(member.model_dir, **{name: value})

    set_both(value, None)  # A value that is not known is not compared.
    require_together(members)
    set_both(value, "en")
    with pytest.raises(InputError, match=f"must have the same {name}"):
        require_together(members)


def test_a_parser_beside_a_translator_is_refused(directories):
    with pytest.raises(InputError, match="parsing was trained for parsing"):
        Translator([directories[0], GOLDEN / "parsing"])
