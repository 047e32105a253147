"""bin/evaluate reports the checkpoint that it scored while a run goes on."""

import json

import in_process
import pytest
import tiny_run
from tiny_translator import ONE_LAYER, learn_vocabulary, write_model

from t2t_lite.evaluation import report
from t2t_lite.storage import checkpoints


@pytest.mark.slow
def test_a_card_is_of_the_checkpoint_that_is_scored(tmp_path, monkeypatch):
    path = tmp_path / "model"
    directory = write_model(path, learn_vocabulary(), ONE_LAYER)
    _, weights = directory.weights()
    evaluate = report.evaluate

    def evaluate_while_a_run_saves(*arguments, **options):
        path = directory.checkpoints / "step-9"
        checkpoints.write(path, weights | {"step": 9})
        checkpoints.prune(directory.checkpoints, 1, path)
        return evaluate(*arguments, **options)

    monkeypatch.setattr(report, "evaluate", evaluate_while_a_run_saves)
    corpus = tiny_run.write_corpus(tmp_path, num_pairs=2)
    status, _, errors = in_process.run(
        "evaluate",
        f"--model_dir={directory.path}",
        *(flag for flag in corpus if flag.startswith("--dev")),
        f"--report={tmp_path}/card",
    )
    assert status == 0, errors
    card = json.loads((tmp_path / "card.json").read_text("utf-8"))
    assert card["model"].endswith("step-1")
    assert card["training"]["updates"] == 1
