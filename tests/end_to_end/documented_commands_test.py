"""documented_commands.py finds every command of the pages, whole."""

import documented_commands
from readme import PAGES

_PAGE = """
```python
print("no command")
```

```bash
# What follows.
echo "one
line" |
  cat
bin/train --steps=1 \\
  --xla
```
Text.
```bash
docker run image
```
"""


def commands_of(folder, monkeypatch):
    page = folder / "page.md"
    page.write_text(_PAGE)
    monkeypatch.setattr(documented_commands, "_ROOT", folder)
    return list(documented_commands.commands_of(page))


def test_a_block_is_split_where_bash_would_run_it(tmp_path, monkeypatch):
    assert commands_of(tmp_path, monkeypatch) == [
        ("page.md:7", '# What follows.\necho "one\nline" |\n  cat'),
        ("page.md:11", "bin/train --steps=1 \\\n  --xla"),
        ("page.md:16", "docker run image"),
    ]


def test_what_cannot_be_run_says_why(tmp_path, monkeypatch):
    reasons = [c.reason for c in commands_of(tmp_path, monkeypatch)]
    assert reasons == ["", "", "needs docker"]


def test_every_line_of_every_block_is_in_a_command():
    """No block ends in the middle of a command."""
    for page in PAGES:
        blocks = page.read_text("utf-8").split("```bash\n")[1:]
        lines = [b.split("\n```")[0] for b in blocks]
        found = [c.text for c in documented_commands.commands_of(page)]
        assert "\n".join(found) == "\n".join(lines)
