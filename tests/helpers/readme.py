"""The examples of README.md and docs/, for tests to run as they stand there."""

import pathlib
import re

ROOT = pathlib.Path(__file__).absolute().parents[2]
PAGES = [ROOT / "README.md", *sorted(ROOT.glob("docs/*.md"))]


def example_with(text: str) -> str:
    """Returns the only Python block of these pages that contains `text`."""
    blocks = [
        block
        for page in PAGES
        for block in re.findall(
            r"^```python\n(.*?)^```", page.read_text("utf-8"), re.M | re.S
        )
    ]
    (block,) = (block for block in blocks if text in block)
    return block
