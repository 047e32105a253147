"""documented_commands.py finds every command of the pages, whole."""

import subprocess
import sys

import documented_commands
import pytest
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


def test_what_a_reader_brings_is_there(tmp_path, monkeypatch):
    from t2t_lite.formats import marian

    given = tmp_path / "given" / "en-de"
    given.mkdir(parents=True)
    for split in ("train", "val", "test_2016_flickr"):
        for language in ("en", "de"):
            (given / f"{split}.{language}").write_text(f"{split}\n" * 210)
    monkeypatch.setattr(documented_commands, "_ROOT", tmp_path)
    monkeypatch.setenv("MULTI30K", str(given))
    monkeypatch.setenv("NEWSTEST", str(given.parent))
    documented_commands.bring_files()
    assert (tmp_path / "some.de").read_text() == "test_2016_flickr\n" * 200
    assert (tmp_path / "test.en").read_text() == "test_2016_flickr\n" * 10
    assert marian.read(tmp_path / "opus-2020-02-26.zip").hparams.d_model == 16


@pytest.mark.parametrize(
    ("flags", "says"),
    [(["--only=["], "argument --only: '['"), ([], "set MULTI30K, TREEBANKS")],
)
def test_wrong_arguments_get_one_line(flags, says):
    process = subprocess.run(
        [sys.executable, documented_commands.__file__, *flags],
        env={"PATH": "/usr/bin:/bin"},
        capture_output=True,
        text=True,
    )
    assert process.returncode == 2
    assert says in process.stderr
    assert "Traceback" not in process.stderr
