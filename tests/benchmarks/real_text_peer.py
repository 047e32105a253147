"""Runs the training command of JoeyNMT or OpenNMT-py for `real_text.py`.

Its arguments are "joeynmt" or "onmt", and a file of settings. `real_text.py`
runs this with the Python of an environment that has the two but not this
package. Modules that they import but do not use in training may be missing.
"""

import importlib.metadata
import sys
import types


def _replace_module(name, **attributes):
    module = types.ModuleType(name)
    vars(module).update(attributes)
    sys.modules.setdefault(name, module)


class _Language:
    @staticmethod
    def component(*_, **__):
        return lambda function: function


def main():
    system, settings = sys.argv[1:]
    _replace_module("spacy")
    _replace_module("spacy.language", Language=_Language)
    sys.modules.setdefault("importlib_metadata", importlib.metadata)
    if system == "joeynmt":
        from joeynmt.__main__ import main as train

        sys.argv[1:] = ["train", settings, "--skip-test"]
    else:
        from onmt.bin.train import main as train

        sys.argv[1:] = ["-config", settings]
    train()


if __name__ == "__main__":
    main()
