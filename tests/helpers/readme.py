"""The examples of README.md and docs/, for tests to run as written."""

import re

from paths import ROOT

PAGES = [ROOT / "README.md", *sorted(ROOT.glob("docs/*.md"))]


def example_with(text: str) -> str:
    """Returns the Python example of these pages that contains `text`.

    There must be exactly one, which may appear on several pages.
    """
    examples = {
        block
        for page in PAGES
        for block in re.findall(
            r"^```python\n(.*?)^```", page.read_text("utf-8"), re.M | re.S
        )
        if text in block
    }
    (example,) = examples
    return example
