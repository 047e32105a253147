"""Translates and scores on one CPU and on two, and prints where weights are.

It also scores dev, as a run does, with weights on one and mirrored on both.

Usage: devices_check.py FOLDER. It is a program because devices can be chosen
only once per process.
"""

import json
import pathlib
import sys
import types

import tensorflow as tf

sys.path.insert(0, str(pathlib.Path(__file__).parents[2] / "bin"))
import checkout  # noqa: F401, this checkout's packages
import in_process
from tiny_translator import (
    LINES,
    ONE_LAYER,
    learn_vocabulary,
    random_model,
    sentence,
    write_model,
)

from t2t_lite.decoding.devices import find_devices
from t2t_lite.decoding.engine import model_engine
from t2t_lite.decoding.search_options import SearchOptions
from t2t_lite.hardware import Hardware
from t2t_lite.model.transformer import Transformer
from t2t_lite.storage.model_directory import ModelDirectory
from t2t_lite.training.dev_evaluation import DevEvaluation
from t2t_lite.training.options import RunOptions
from t2t_lite.translation.line_translator import LineTranslator
from t2t_lite.translation_task import TASK


def run_programs(folder, vocabulary):
    """Writes DEVICES.txt and DEVICES.json, where DEVICES is 1 or all."""
    model_dir = write_model(folder / "model", vocabulary, ONE_LAYER).path
    text, dev = folder / "text", folder / "dev"
    lines = [sentence(n % 13, n) if n % 13 else "" for n in range(1000)]
    text.write_text("".join(f"{line}\n" for line in lines))
    dev.write_text("".join(f"{line}\n" for line in LINES))
    for devices in ("1", "all"):
        given = (f"--model_dir={model_dir}", f"--devices={devices}")
        for name, *flags in (
            (
                "translate",
                f"--input={text}",
                f"--output={folder / devices}.txt",
                "--scores",
                "--batch_lines=300",
            ),
            (
                "evaluate",
                f"--test_source={dev}",
                f"--test_target={dev}",
                "--splits=test",
                f"--json={folder / devices}.json",
            ),
        ):
            status, _, errors = in_process.run(name, *given, *flags)
            assert status == 0, errors


def weights_devices(translator):
    """Returns the devices that hold the weights of each search, in order."""
    return [
        device
        for search in translator.translate_ids._searches
        for device in {h.device for h in search.captured_inputs}
    ]


def copied(model, vocabulary, options):
    """Returns the devices of weights that are copied to every device."""
    engine = model_engine(
        model, vocabulary, options, xla=False, devices=find_devices("all")
    )
    translator = LineTranslator(engine, vocabulary, options)
    return {"devices": weights_devices(translator)}


def mirrored_model(vocabulary):
    """Returns a model whose weights are on all devices."""
    with tf.distribute.MirroredStrategy(find_devices("all")).scope():
        model = Transformer(ONE_LAYER, vocabulary.size)
        model.build()
    return model


def mirrored(model, vocabulary, options):
    """Returns the devices of mirrored weights, and translations as they change.

    The translations are those of an unmirrored model and of the mirrored one.
    """
    of_all = mirrored_model(vocabulary)
    translators = [
        LineTranslator.from_model(each, vocabulary, options, xla=False)
        for each in (model, of_all)
    ]
    found = [], []
    for seed in (4, 5):
        weights = random_model(ONE_LAYER, vocabulary, seed).get_weights()
        for each in (model, of_all):
            each.set_weights(weights)
        for texts, translator in zip(found, translators, strict=True):
            texts.append(translator(LINES))
    return {"devices": weights_devices(translators[1]), "found": found}


def dev_scores(model, vocabulary, folder):
    """Returns the devices that score dev, and its scores as weights change.

    The scores are those of an unmirrored model and of the mirrored one. Batches
    are small, so that both devices have some.
    """
    hardware = Hardware("CPU", memory_bytes=48 * 2**20, num_cores=2)
    sources = [sentence(1 + n % 13, n) for n in range(40)]
    targets = LineTranslator.from_model(model, vocabulary, xla=False)(sources)
    scores, evaluations = ([], []), []
    models = model, mirrored_model(vocabulary)
    for each, found in zip(models, scores, strict=True):
        evaluation = DevEvaluation(
            TASK,
            each,
            ModelDirectory(folder / "model"),
            pairs=list(zip(sources, targets, strict=True)),
            sha256="",
            options=RunOptions(),
            summaries=types.SimpleNamespace(
                write=lambda _, values, found=found: found.append(values)
            ),
            hardware=hardware,
        )
        evaluations.append(evaluation)
        for step, seed in enumerate((3, 5)):  # The first is that of `model`.
            weights = random_model(ONE_LAYER, vocabulary, seed).get_weights()
            each.set_weights(weights)
            evaluation.evaluate(step, should_stop=lambda: False)
    devices = weights_devices(evaluations[1]._scorer._translator)
    return {"devices": devices, "found": scores}


def main(folder):
    """Prints a line of JSON."""
    tf.config.set_logical_device_configuration(
        tf.config.list_physical_devices("CPU")[0],
        [tf.config.LogicalDeviceConfiguration()] * 2,
    )
    folder, vocabulary = pathlib.Path(folder), learn_vocabulary()
    run_programs(folder, vocabulary)
    # Optimizing a graph takes longer than running it a few times.
    tf.config.optimizer.set_experimental_options(
        {"disable_meta_optimizer": True}
    )
    model = random_model(ONE_LAYER, vocabulary)
    options = SearchOptions.from_hparams(ONE_LAYER, tokens_at_once=48)
    arguments = (model, vocabulary, options)
    found = {
        "copied": copied(*arguments),
        "mirrored": mirrored(*arguments),
        "dev": dev_scores(
            random_model(ONE_LAYER, vocabulary), vocabulary, folder
        ),
    }
    print(json.dumps(found))


if __name__ == "__main__":
    main(*sys.argv[1:])
