"""Translates and scores on one CPU and on two, and prints where weights are.

Usage: devices_check.py FOLDER. It is a program because devices can be chosen
only once per process.
"""

import json
import pathlib
import sys

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
from t2t_lite.model.transformer import Transformer
from t2t_lite.translation.line_translator import LineTranslator


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


def mirrored(model, vocabulary, options):
    """Returns the devices of mirrored weights, and translations as they change.

    The translations are those of an unmirrored model and of the mirrored one.
    """
    with tf.distribute.MirroredStrategy(find_devices("all")).scope():
        of_all = Transformer(ONE_LAYER, vocabulary.size)
        of_all.build()
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


def main(folder):
    """Prints a line of JSON."""
    tf.config.set_logical_device_configuration(
        tf.config.list_physical_devices("CPU")[0],
        [tf.config.LogicalDeviceConfiguration()] * 2,
    )
    vocabulary = learn_vocabulary()
    run_programs(pathlib.Path(folder), vocabulary)
    # Optimizing a graph takes longer than running it a few times.
    tf.config.optimizer.set_experimental_options(
        {"disable_meta_optimizer": True}
    )
    model = random_model(ONE_LAYER, vocabulary)
    options = SearchOptions.from_hparams(ONE_LAYER, tokens_at_once=48)
    arguments = (model, vocabulary, options)
    found = {"copied": copied(*arguments), "mirrored": mirrored(*arguments)}
    print(json.dumps(found))


if __name__ == "__main__":
    main(*sys.argv[1:])
