"""The README's examples, for tests to run as they stand there."""

import pathlib
import re

README = pathlib.Path(__file__).absolute().parents[2] / "README.md"


def example_with(text):
    """Returns the one block of Python in the README that has `text` in it."""
    blocks = re.findall(r"```python\n(.*?)```", README.read_text("utf-8"), re.S)
    (block,) = (block for block in blocks if text in block)
    return block
