"""What workers must have alike, and what is said where they do not."""

import dataclasses

import numpy as np
import pytest

from t2t_lite.errors import InputError
from t2t_lite.hparams import HParams
from t2t_lite.storage.model_directory import Settings
from t2t_lite.training import agreement
from t2t_lite.training.options import RunOptions

SETTINGS = Settings(
    hparams=HParams(),
    corpus={"corpus": "embedded"},
    data_sha256="of the text",
    vocabulary_sha256="of the vocabulary",
    vocabulary_size=37_000,
    micro_batch_tokens=1024,
)


@pytest.fixture
def check(monkeypatch):
    """A function of a worker's settings; the chief has the first it gets."""
    chiefs = []

    def value_from_chief(_, value):
        chiefs.append(np.array(value))
        return chiefs[0]

    monkeypatch.setattr(agreement, "value_from_chief", value_from_chief)

    def check(settings=SETTINGS, dev_pairs=(("a", "b"),), **options):
        agreement.require_chiefs_settings(
            None, settings, RunOptions(**options), dev_pairs
        )

    check()
    return check


def test_workers_may_differ_in_what_is_their_own(check):
    check()
    other = dataclasses.replace(
        SETTINGS, corpus={"train_source": "/here"}, micro_batch_tokens=512
    )
    check(other, micro_batch_tokens=512, save_every_minutes=3.0)


@pytest.mark.parametrize("field", ["seed", "learning_rate_scale", "d_ff"])
def test_a_field_that_differs_is_named(check, field):
    changed = {field: getattr(SETTINGS.hparams, field) * 2}
    hparams = dataclasses.replace(SETTINGS.hparams, **changed)
    with pytest.raises(InputError, match=f"must have the chief's {field}, and"):
        check(dataclasses.replace(SETTINGS, hparams=hparams))


@pytest.mark.parametrize(
    ("field", "name"),
    [
        ("data_sha256", "training text"),
        ("vocabulary_sha256", "vocabulary"),
    ],
)
def test_other_text_and_another_vocabulary_are_named(check, field, name):
    with pytest.raises(InputError, match=f"must have the chief's {name}, and"):
        check(dataclasses.replace(SETTINGS, **{field: "other"}))


@pytest.mark.parametrize(
    ("given", "name"),
    [
        ({"precision": "bfloat16"}, "precision"),
        ({"patience": 3}, "patience"),
        ({"evaluate_every_steps": 5}, "evaluate_every_steps"),
        ({"dev_pairs": None}, "dev text"),
        ({"dev_pairs": [("a", "c")]}, "dev text"),
    ],
)
def test_what_decides_when_to_evaluate_is_compared(check, given, name):
    with pytest.raises(InputError, match=f"must have the chief's {name}, and"):
        check(**given)
