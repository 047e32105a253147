"""Workers must agree on what they train; an error names what differs."""

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
    """A function that checks a worker's settings; the chief has defaults."""
    # The chief's options, settings and shapes; they differ in length.
    chiefs = {}

    def value_from_chief(_, value):
        return chiefs.setdefault(len(value), np.array(value))

    monkeypatch.setattr(agreement, "value_from_chief", value_from_chief)

    def check(
        settings=SETTINGS, dev_sha256="of dev", shapes=((3, 4, 5),), **options
    ):
        own = RunOptions(**options)
        agreement.require_chiefs_options(None, own, dev_sha256)
        agreement.require_chiefs_settings(None, settings)
        agreement.require_chiefs_shapes(None, shapes)

    check()
    return check


def test_workers_may_differ_in_what_is_their_own(check):
    check()
    other = dataclasses.replace(
        SETTINGS, corpus={"train_source": "/here"}, micro_batch_tokens=512
    )
    check(
        other, micro_batch_tokens=512, save_every_minutes=3.0, hang_minutes=9.0
    )


@pytest.mark.parametrize("field", ["seed", "learning_rate_scale", "d_ff"])
def test_a_field_that_differs_is_named(check, field):
    changed = {field: getattr(SETTINGS.hparams, field) * 2}
    hparams = dataclasses.replace(SETTINGS.hparams, **changed)
    with pytest.raises(InputError, match=f"must have the chief's {field}, but"):
        check(dataclasses.replace(SETTINGS, hparams=hparams))


@pytest.mark.parametrize(
    ("field", "value", "name"),
    [
        ("data_sha256", "of other text", "training text"),
        ("vocabulary_sha256", "of another", "vocabulary"),
        ("corpus_weights", [2.0, 1.0], "corpus_weights"),
    ],
)
def test_other_text_and_another_vocabulary_are_named(check, field, value, name):
    with pytest.raises(InputError, match=f"must have the chief's {name}, but"):
        check(dataclasses.replace(SETTINGS, **{field: value}))


@pytest.mark.parametrize(
    ("given", "name"),
    [
        ({"shapes": ((3, 4, 6),)}, "shapes of batches"),
        ({"precision": "bfloat16"}, "precision"),
        ({"patience": 3}, "patience"),
        ({"evaluate_every_steps": 5}, "evaluate_every_steps"),
        ({"divergence_factor": 3.0}, "divergence_factor"),
        ({"on_divergence": "skip"}, "on_divergence"),
        ({"max_skips": 1}, "max_skips"),
        ({"dev_sha256": ""}, "dev text"),
        ({"dev_sha256": "of other text"}, "dev text"),
    ],
)
def test_what_decides_when_to_evaluate_and_to_skip_is_compared(
    check, given, name
):
    with pytest.raises(InputError, match=f"must have the chief's {name}, but"):
        check(**given)


def test_all_workers_refuse_options_that_need_dev_text_or_none(monkeypatch):
    """If only one worker refused, the others would wait for it."""
    agreed = []
    monkeypatch.setattr(
        agreement,
        "_require_chiefs",
        lambda _, must_match: agreed.append(must_match),
    )
    with pytest.raises(InputError, match="patience needs dev text"):
        agreement.require_chiefs_options(None, RunOptions(patience=3), "")
    assert [must_match["dev text"] for must_match in agreed] == [""]
    agreement.require_chiefs_options(None, RunOptions(patience=3), "of dev")
