"""Corpora: text files, especially wrong ones, and WMT 2014 through TFDS."""

import contextlib
import gzip
import http.server
import io
import os
import pathlib
import shutil
import socket
import subprocess
import sys
import threading
import time

import pytest
from paths import ROOT

from t2t_lite.errors import InputError
from t2t_lite_data import corpora, embedded, text_files, wmt14


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """An empty working directory."""
    monkeypatch.chdir(tmp_path)
    return tmp_path


def write(**content_of):
    """Writes files to the working directory; `a_en` becomes a.en."""
    for name, content in content_of.items():
        path = pathlib.Path(name.replace("_", "."))
        path.write_bytes(
            gzip.compress(content) if path.suffix == ".gz" else content
        )


# Valid text files.


def test_line_n_pairs_with_line_n(folder):
    write(a_en=b"one\ntwo\n", a_de="eins\nzwölf\n".encode())
    assert list(text_files.pairs("a.en", "a.de")) == [
        ("one", "eins"),
        ("two", "zwölf"),
    ]


def test_gzipped_and_plain_files_pair(folder):
    write(a_en_gz=b"one\ntwo\n", a_de=b"eins\nzwei\n")
    assert list(text_files.pairs("a.en.gz", "a.de")) == [
        ("one", "eins"),
        ("two", "zwei"),
    ]


def test_globs_pair_in_sorted_order(folder):
    for part in "cab":
        write(**{f"{part}_en": f"{part}\n".encode()})
        write(**{f"{part}_de": f"{part.upper()}\n".encode()})
    assert list(text_files.pairs("*.en", "*.de")) == [
        ("a", "A"),
        ("b", "B"),
        ("c", "C"),
    ]


def test_comma_separated_patterns_keep_their_order(folder):
    write(b_en=b"b\n", a_en=b"a\n", b_de=b"B\n", a_de=b"A\n")
    assert list(text_files.pairs("b.en,a.e?", "b.de,a.de")) == [
        ("b", "B"),
        ("a", "A"),
    ]


@pytest.mark.parametrize("name", ["a", "a[1]", "a,b", "a*", "[,]"])
def test_absolute_patterns_mean_the_same_from_another_folder(
    tmp_path, monkeypatch, name
):
    (tmp_path / name).mkdir()
    monkeypatch.chdir(tmp_path / name)
    write(a_en=b"a\n", b_en=b"b\n", c_en=b"c\n")
    (tmp_path / name / "d[1],d").write_bytes(b"d\n")
    patterns = ["a.en", "b.en,a.en", "[bc].en", "./*.en", "c.*,a.en", "d[1],d"]
    found = [list(map(os.path.abspath, text_files.files(p))) for p in patterns]
    absolute = list(map(text_files.absolute, patterns))
    monkeypatch.chdir("/")
    assert [text_files.files(pattern) for pattern in absolute] == found
    here = str(tmp_path)
    assert name != "a" or absolute[1] == f"{here}/a/b.en,{here}/a/a.en"


@pytest.mark.parametrize("name", ["home", "ho,me", "home[1]"])
def test_home_is_found(tmp_path, monkeypatch, name):
    (tmp_path / name).mkdir()
    monkeypatch.chdir(tmp_path / name)
    monkeypatch.setenv("HOME", str(tmp_path / name))
    write(a_en=b"a\n", b_en=b"b\n", c=b"c\n")
    home = tmp_path / name
    for patterns in ("~/a.en,~/b.en", "~/?.en"):
        paths = [str(home / "a.en"), str(home / "b.en")]
        assert text_files.files(text_files.absolute(patterns)) == paths
    assert text_files.files("~/c") == [str(home / "c")]
    lines, count = text_files.input_lines("~/c")
    assert (list(lines), count) == (["c"], 1)


def test_a_name_with_pattern_characters_is_a_name(folder):
    (folder / "a[1],b.en").write_bytes(b"one\n")
    (folder / "a[1],b.de").write_bytes(b"eins\n")
    assert list(text_files.pairs("a[1],b.en", "a[1],b.de")) == [("one", "eins")]


@pytest.mark.parametrize(
    ("content", "lines"),
    [
        pytest.param(b"a\r\nb\r\n", ["a", "b"], id="crlf"),
        pytest.param(b"a\rb\n", ["a\rb"], id="lone_cr"),
        pytest.param(b"a\r\r\n", ["a\r"], id="only_one_cr_goes"),
        pytest.param(
            "a\u2028b\u2029c\x85d\x0be\x0cf\x1cg\n".encode(),
            ["a\u2028b\u2029c\x85d\x0be\x0cf\x1cg"],
            id="other_separators",
        ),
        pytest.param(b"\xef\xbb\xbfa\nb\n", ["a", "b"], id="bom"),
        pytest.param(
            b"a\n\xef\xbb\xbfb\n", ["a", "\ufeffb"], id="bom_only_at_start"
        ),
        pytest.param(b"a\nb", ["a", "b"], id="no_final_newline"),
        pytest.param(b"a\r", ["a"], id="no_final_newline_behind_cr"),
        pytest.param(b"a\n\n", ["a", ""], id="blank_last_line"),
        pytest.param(b"\n  a \n", ["", "  a "], id="blanks_are_kept"),
    ],
)
def test_only_newline_ends_a_line(folder, content, lines):
    write(a_en=content, a_en_gz=content)
    plain_and_gzipped = list(text_files.pairs("a.en", "a.en.gz"))
    assert plain_and_gzipped == [(line, line) for line in lines]


def test_files_are_read_as_they_are_asked_for(folder):
    write(a_en=b"one\n\xff\n", a_de=b"eins\nzwei\n")
    stream = text_files.pairs("a.en", "a.de")
    assert next(stream) == ("one", "eins")
    with pytest.raises(InputError, match="line 2"):
        next(stream)


# Invalid text files: when they are refused, and with which message.


@pytest.mark.parametrize(
    ("source", "target", "message"),
    [
        ("none.en", "a.de", "no file matches 'none.en'; check the path"),
        ("a.en", "*.none", "no file matches '*.none'; check the path"),
        ("a.en,none.en", "a.de,b.de", "no file matches 'none.en'; check the"),
        ("a.en,", "a.de", "there is a comma with no file beside it: leave"),
        ("dir", "a.de", "dir is a directory; give the files inside it"),
        ("a.en", "d*", "dir is a directory; give the files inside it"),
        (
            "?.en",
            "a.de",
            "the same number of each; received 2 of ?.en and 1 of a.de",
        ),
    ],
)
def test_wrong_paths_are_refused_at_once(folder, source, target, message):
    write(a_en=b"one\n", b_en=b"two\n", a_de=b"eins\n", b_de=b"zwei\n")
    (folder / "dir").mkdir()
    with pytest.raises(InputError) as refusal:
        text_files.pairs(source, target)
    assert message in str(refusal.value)


@pytest.mark.parametrize(
    ("source", "target", "message"),
    [
        (
            {"a_en": b"one\ntwo\xfc\n"},
            {"a_de": b"eins\nzwei\n"},
            "a.en, line 2: text must be UTF-8; received byte 0xfc at "
            "position 4",
        ),
        (
            {"a_en": b"one\n"},
            {"a_de": "eins\n".encode("utf-16")},
            "a.de, line 1: text must be UTF-8; received byte 0xff",
        ),
        (
            {"a_en": b"\xed\xa0\x80\n"},
            {"a_de": b"eins\n"},
            "a.en, line 1: text must be UTF-8; received byte 0xed",
        ),
        ({"a_en": b""}, {"a_de": b"eins\n"}, "a.en is empty; it must hold"),
        ({"a_en": b"one\n"}, {"a_de_gz": b""}, "a.de.gz is empty; it must"),
        (
            {"a_en": b"one\n"},
            {"a_de": b"eins\nzwei\ndrei\n"},
            "received 3 lines in a.de but 1 in a.en",
        ),
        (
            {"a_en": b"one\ntwo\nthree\nfour"},
            {"a_de": b"eins\nzwei\n"},
            "received 4 lines in a.en but 2 in a.de",
        ),
        (
            {"a_en": b"one\n", "b_en": b"two\n"},
            {"a_de": b"eins\nzwei\n", "b_de": b"\n"},
            "received 2 lines in a.de but 1 in a.en",
        ),
    ],
)
def test_wrong_contents_are_refused_in_reading(folder, source, target, message):
    write(**source, **target)
    stream = text_files.pairs("?.en*", "?.de*")
    with pytest.raises(InputError) as refusal:
        list(stream)
    assert message in str(refusal.value)
    assert "\n" not in str(refusal.value)


def test_a_file_to_translate_is_checked_to_its_end_before_the_work(folder):
    write(a_en=b"one\n\xff\n")
    with pytest.raises(InputError, match=r"a\.en, line 2: text must be UTF-8"):
        text_files.input_lines("a.en")


def test_pairs_of_files_are_counted(tmp_path):
    source, target = tmp_path / "en", tmp_path / "de"
    source.write_text("a\nb\n")
    target.write_text("A\nB\n")
    pairs, count = text_files.input_pairs(str(source), str(target))
    assert ([*pairs], count) == ([("a", "A"), ("b", "B")], 2)
    target.write_text("A\n")
    with pytest.raises(InputError, match="received 2 lines in"):
        text_files.input_pairs(str(source), str(target))


def test_pairs_of_a_pipe_are_not_counted(tmp_path):
    source, target = tmp_path / "en", tmp_path / "de"
    source.write_text("a\nb\n")
    os.mkfifo(target)
    writing = threading.Thread(target=target.write_text, args=["A\nB\n"])
    writing.start()
    pairs, count = text_files.input_pairs(str(source), str(target))
    assert ([*pairs], count) == ([("a", "A"), ("b", "B")], None)
    writing.join()


@pytest.mark.parametrize(
    ("content", "expected"),
    [(b"", []), (b"one\n\nthree\n", ["one", "", "three"])],
)
def test_a_file_to_translate_is_counted_and_may_be_empty(
    folder, content, expected
):
    write(a_en=content)
    lines, count = text_files.input_lines("a.en")
    assert (list(lines), count) == (expected, len(expected))


def test_a_pipe_to_translate_is_read_once(folder):
    os.mkfifo("pipe")
    writer = threading.Thread(
        target=lambda: pathlib.Path("pipe").write_text("one\ntwo\n"),
        daemon=True,  # In case nobody reads.
    )
    writer.start()
    lines, count = text_files.input_lines("pipe")
    assert (list(lines), count) == (["one", "two"], None)
    writer.join()


@pytest.mark.parametrize("path", [None, "-"])
def test_standard_input_is_a_dash_too(monkeypatch, path):
    stdin = io.TextIOWrapper(io.BytesIO(b"one\n"))
    monkeypatch.setattr(sys, "stdin", stdin)
    lines, count = text_files.input_lines(path)
    assert (list(lines), count) == (["one"], None)


def broken_byte(content, position):
    return (
        content[:position]
        + bytes([content[position] ^ 0xFF])
        + content[position + 1 :]
    )


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (
            gzip.compress(b"one\n" * 1000)[:-20],
            "a.en.gz is cut short or damaged after line",
        ),
        (
            broken_byte(gzip.compress(b"one\n" * 1000), 10),
            "a.en.gz is cut short or damaged after line 0",
        ),
        (
            broken_byte(gzip.compress(b"one\n" * 1000), -6),
            "a.en.gz cannot be read: CRC check failed",
        ),
        (b"one\n", "a.en.gz cannot be read: Not a gzipped file"),
    ],
    ids=["truncated", "bad_block", "bad_checksum", "plain_text"],
)
def test_damaged_gzip_files_are_refused(folder, content, message):
    (folder / "a.en.gz").write_bytes(content)
    write(a_de=b"eins\n" * 1000)
    with pytest.raises(InputError) as refusal:
        list(text_files.pairs("a.en.gz", "a.de"))
    assert message in str(refusal.value)


@contextlib.contextmanager
def without_root_rights():
    """Becomes the user nobody if root runs the tests, as root may read all."""
    user = os.geteuid()
    if user == 0:
        os.seteuid(65534)
    try:
        yield
    finally:
        os.seteuid(user)


def test_a_file_without_permission_is_refused(folder):
    write(a_en=b"one\n", a_de=b"eins\n")
    (folder / "a.en").chmod(0)
    # By a relative path: the user nobody may not enter the folders above.
    folder.chmod(0o755)
    stream = text_files.pairs("a.en", "a.de")
    with (
        without_root_rights(),
        pytest.raises(InputError, match=r"^a\.en cannot be read: Permission"),
    ):
        next(stream)


# Corpora.


def test_every_corpus_is_called_by_its_name():
    assert corpora.DEFAULT in corpora.CORPORA
    for name, corpus in corpora.CORPORA.items():
        assert corpora.named(name) is corpus
        assert corpus.name == name


def test_an_unknown_corpus_is_refused_with_the_nearest():
    with pytest.raises(InputError) as refusal:
        corpora.named("wmt14-en-de")
    assert str(refusal.value) == (
        "unknown corpus 'wmt14-en-de' (did you mean 'wmt14_en_de'?); the "
        "corpora are embedded, wmt14_en_de, wmt14_en_fr, wsj, high_confidence, "
        "and files of your own go in --train_source and --train_target, or in "
        "--train_trees"
    )


def test_a_name_like_no_other_is_refused_without_a_guess():
    with pytest.raises(InputError, match="unknown corpus 'x'; the corpora are"):
        corpora.named("x")


@pytest.fixture
def small_embedded(monkeypatch):
    """Makes the embedded corpus draw only one training pair."""
    monkeypatch.setitem(embedded.SIZES, "train", 1)
    uncached = embedded.drawn_until.__wrapped__
    monkeypatch.setattr(embedded, "drawn_until", uncached)


@pytest.mark.usefixtures("small_embedded")
@pytest.mark.parametrize("split", corpora.SPLITS)
def test_the_embedded_corpus_has_every_split(split):
    pairs = list(corpora.named("embedded").pairs(split))
    assert len(pairs) == embedded.SIZES[split]


def test_the_embedded_corpus_brings_its_plain_sentences():
    checks = corpora.named("embedded").read_checks()
    assert {name: len(rows) for name, rows in checks.items()} == {
        "plain_sentences": 200,
        "unknown_words": 20,
    }


def test_other_corpora_bring_no_checks(tmp_path):
    for name in ("a.en", "a.de"):
        (tmp_path / name).write_text("one\n", "utf-8")
    files = (str(tmp_path / "a.en"), str(tmp_path / "a.de"))
    assert corpora.from_text_files(train=files).read_checks() == {}
    assert corpora.named("wmt14_en_de").read_checks() == {}


def test_text_files_become_a_corpus_that_can_be_read_again(folder):
    write(t_en=b"one\n", t_de=b"eins\n", d_en=b"two\n", d_de=b"zwei\n")
    corpus = corpora.from_text_files(
        train=("t.en", "t.de"), dev=("d.en", "d.de"), test=(None, None)
    )
    assert list(corpus.pairs("train")) == [("one", "eins")]
    assert list(corpus.pairs("dev")) == [("two", "zwei")]
    assert list(corpus.pairs("train")) == [("one", "eins")]


@pytest.mark.parametrize(
    ("source", "target", "name", "languages"),
    [
        ("tr.en", "tr.de", "multi30k-tr.en-de", ("en", "de")),
        ("tr.en.gz", "tr.fr.gz", "multi30k-tr.en-fr", ("en", "fr")),
        ("*-0.en,tr.en", "tr.de,tr.de", "multi30k-p-0.en-de", ("en", "de")),
        ("my src", "tgt", "multi30k-my_src-tgt", ("my src", "tgt")),
    ],
)
def test_a_corpus_of_files_is_called_by_its_first_files(
    folder, source, target, name, languages
):
    directory = folder / "multi30k"
    directory.mkdir()
    os.chdir(directory)
    files = ["tr.en", "tr.de", "p-0.en", "my src", "tgt"]
    for file in [*files, "tr.en.gz", "tr.fr.gz"]:
        (directory / file).touch()
    corpus = corpora.from_text_files(train=(source, target))
    assert corpus.name == name
    assert (corpus.source_language, corpus.target_language) == languages


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({}, "no text files; give them with --train_source and --train_target"),
        ({"train": ("", "")}, "no text files; give them with --train_source"),
        (
            {"train": ("a.en", None)},
            "--train_source needs --train_target, which is not given",
        ),
        (
            {"train": ("a.en", "a.de"), "dev": ("", "a.de")},
            "--dev_target needs --dev_source, which is not given",
        ),
        (
            {"train": ("a.en", "a.de"), "test": ("a.en", "none")},
            "no file matches 'none'; check the path",
        ),
    ],
)
def test_incomplete_text_files_are_refused_at_once(folder, arguments, message):
    write(a_en=b"one\n", a_de=b"eins\n")
    with pytest.raises(InputError) as refusal:
        corpora.from_text_files(**arguments)
    assert message in str(refusal.value)


def test_an_absent_split_is_refused_with_its_flags(folder):
    write(a_en=b"one\n", a_de=b"eins\n")
    corpus = corpora.from_text_files(train=("a.en", "a.de"))
    with pytest.raises(InputError) as refusal:
        corpus.pairs("dev")
    assert str(refusal.value) == (
        "no dev files; give them with --dev_source and --dev_target"
    )


@pytest.mark.parametrize("name", ["wmt14_en_de", "text files"])
def test_an_unknown_split_is_refused(folder, name):
    write(a_en=b"one\n", a_de=b"eins\n")
    files = corpora.from_text_files(train=("a.en", "a.de"))
    corpus = corpora.CORPORA.get(name, files)
    with pytest.raises(InputError, match=r"train, dev, test; received 'valid'"):
        corpus.pairs("valid")


@pytest.mark.slow
def test_importing_corpora_loads_neither_tensorflow_nor_tfds():
    heavy = {"tensorflow", "tensorflow_datasets", "requests"}
    program = (
        "import sys, checkout, t2t_lite_data.corpora; "
        f"exit(any(map(sys.modules.get, {heavy})))"
    )
    assert (
        subprocess.run(
            [sys.executable, "-c", program], cwd=ROOT / "bin"
        ).returncode
        == 0
    )


# WMT 2014. Only its download is replaced; all else is TFDS's own: what it
# writes to disk and reads back, and what it would request from which host. No
# host is contacted: all requests go to a proxy on this machine.


def fake_wmt14_download(builder, dl_manager):
    """Replaces `Wmt14Translate._split_generators`: five pairs per split."""
    foreign, _ = builder.builder_config.language_pair
    return {
        split: [
            (
                i,
                {
                    language: f"{split} {i} {language} ü"
                    for language in ("en", foreign)
                },
            )
            for i in range(5)
        ]
        for split in ("train", "validation", "test")
    }


@pytest.fixture(scope="module")
def wmt14_on_disk(tmp_path_factory):
    """A TFDS data directory with a small wmt14_translate/de-en and fr-en."""
    import tensorflow_datasets as tfds
    from tensorflow_datasets.translate import Wmt14Translate

    folder = tmp_path_factory.mktemp("tfds")
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Wmt14Translate, "_split_generators", fake_wmt14_download)
        for config in ("de-en", "fr-en"):
            tfds.builder(
                f"wmt14_translate/{config}", data_dir=folder
            ).download_and_prepare()
    return folder


@pytest.fixture
def proxy(monkeypatch):
    """A function that sends all requests to a port of this machine."""

    def use(port):
        for name in ("no_proxy", "NO_PROXY", "ALL_PROXY", "all_proxy"):
            monkeypatch.delenv(name, raising=False)
        for name in ("http_proxy", "https_proxy", "HTTP_PROXY", "HTTPS_PROXY"):
            monkeypatch.setenv(name, f"http://127.0.0.1:{port}")

    return use


@pytest.fixture
def offline(proxy):
    with socket.socket() as closed:
        closed.bind(("127.0.0.1", 0))  # Not listening, so it refuses.
        proxy(closed.getsockname()[1])
        yield


@pytest.fixture
def serving(proxy):
    """A function that makes every URL answer with one HTTP status."""
    with contextlib.ExitStack() as stack:

        def use(status):
            class Handler(http.server.BaseHTTPRequestHandler):
                def do_GET(self):
                    self.send_response(status)
                    self.send_header("Content-Length", "0")
                    self.end_headers()

                def log_message(self, *arguments):
                    pass

            server = stack.enter_context(
                http.server.HTTPServer(("127.0.0.1", 0), Handler)
            )
            thread = threading.Thread(target=server.serve_forever, args=[0.01])
            thread.start()
            stack.callback(thread.join)
            stack.callback(server.shutdown)
            proxy(server.server_port)

        yield use


@pytest.mark.parametrize("language", ["de", "fr"])
@pytest.mark.parametrize(
    ("split", "tfds_split"),
    [("train", "train"), ("dev", "validation"), ("test", "test")],
)
def test_wmt14_goes_from_english_in_the_splits_of_the_paper(
    wmt14_on_disk, offline, monkeypatch, language, split, tfds_split
):
    monkeypatch.setenv("TFDS_DATA_DIR", str(wmt14_on_disk))
    monkeypatch.setattr(wmt14, "_PAIRS_PER_READ", 2)
    pairs = list(corpora.named(f"wmt14_en_{language}").pairs(split))
    assert sorted(pairs) == [
        (f"{tfds_split} {i} en ü", f"{tfds_split} {i} {language} ü")
        for i in range(5)
    ]
    assert list(wmt14.pairs(language, split)) == pairs


def test_wmt14_reads_what_tfds_mocks(serving):
    import tensorflow_datasets as tfds

    serving(200)
    with tfds.testing.mock_data(num_examples=3):
        pairs = list(wmt14.pairs("de", "train"))
    assert [tuple(map(type, pair)) for pair in pairs] == [(str, str)] * 3


def test_wmt14_out_of_reach_is_refused_in_seconds(
    tmp_path, offline, monkeypatch
):
    monkeypatch.setenv("TFDS_DATA_DIR", str(tmp_path))
    start = time.monotonic()
    with pytest.raises(InputError) as refusal:
        wmt14.pairs("de", "dev")
    assert time.monotonic() - start < 10
    assert str(refusal.value) == (
        f"the corpus is not in {tmp_path}/wmt14_translate/de-en/1.0.0 and "
        "cannot be downloaded from www.statmt.org (ProxyError), "
        "data.statmt.org (ProxyError); copy that directory from a machine "
        "with a network, or give files of your own with --train_source and "
        "--train_target"
    )


def test_wmt14_does_not_wait_for_a_silent_host(tmp_path, proxy, monkeypatch):
    monkeypatch.setenv("TFDS_DATA_DIR", str(tmp_path))
    monkeypatch.setattr(wmt14, "PROBE_SECONDS", 0.2)
    with socket.create_server(("127.0.0.1", 0)) as silent:
        proxy(silent.getsockname()[1])
        with pytest.raises(InputError, match=r"\(no answer in 0\.2 s\), data"):
            wmt14.pairs("fr", "train")


def test_wmt14_does_not_wait_for_a_name_to_be_found(
    tmp_path, proxy, monkeypatch
):
    found = threading.Event()
    monkeypatch.setenv("TFDS_DATA_DIR", str(tmp_path))
    monkeypatch.setattr(wmt14, "PROBE_SECONDS", 0.2)
    monkeypatch.setattr(
        socket, "getaddrinfo", lambda *_, **__: found.wait(60) and []
    )
    proxy(1)
    with pytest.raises(InputError, match=r"\(no answer in 0\.2 s\), data"):
        wmt14.pairs("fr", "train")
    found.set()


def test_wmt14_gone_from_its_host_is_refused(tmp_path, serving, monkeypatch):
    monkeypatch.setenv("TFDS_DATA_DIR", str(tmp_path))
    serving(404)
    with pytest.raises(InputError, match=r"\(HTTP 404\), data.*\(HTTP 404\)"):
        wmt14.pairs("de", "train")


def test_wmt14_is_prepared_at_first_use(tmp_path, serving, monkeypatch):
    from tensorflow_datasets.translate import Wmt14Translate

    monkeypatch.setenv("TFDS_DATA_DIR", str(tmp_path))
    monkeypatch.setattr(
        Wmt14Translate, "_split_generators", fake_wmt14_download
    )
    serving(200)
    assert len(list(wmt14.pairs("de", "dev"))) == 5
    assert (tmp_path / "wmt14_translate/de-en/1.0.0").is_dir()


def test_a_failed_download_of_wmt14_is_one_line(tmp_path, serving, monkeypatch):
    from tensorflow_datasets.translate import Wmt14Translate

    def fail(builder, dl_manager):
        raise AssertionError("Sizes do not match:\n1 vs 2")

    monkeypatch.setenv("TFDS_DATA_DIR", str(tmp_path))
    monkeypatch.setattr(Wmt14Translate, "_split_generators", fail)
    serving(200)
    with pytest.raises(InputError) as refusal:
        wmt14.pairs("de", "dev")
    assert str(refusal.value) == (
        "wmt14_translate/de-en/1.0.0 could not be prepared in "
        f"{tmp_path}/wmt14_translate/de-en/1.0.0: AssertionError: Sizes do not "
        "match: 1 vs 2"
    )


@pytest.mark.parametrize("lost", ["*train*", "*"])
def test_damaged_wmt14_is_refused(
    wmt14_on_disk, tmp_path, offline, monkeypatch, lost
):
    monkeypatch.setenv("TFDS_DATA_DIR", str(tmp_path))
    corpus = tmp_path / "wmt14_translate/de-en/1.0.0"
    shutil.copytree(wmt14_on_disk / corpus.relative_to(tmp_path), corpus)
    for file in corpus.glob(lost):
        file.unlink()
    with pytest.raises(InputError) as refusal:
        list(wmt14.pairs("de", "train"))
    assert f"{corpus} is damaged; delete it" in str(refusal.value)
    assert "\n" not in str(refusal.value)


def test_without_tfds_wmt14_says_what_to_install(monkeypatch):
    monkeypatch.setitem(sys.modules, "tensorflow_datasets", None)
    with pytest.raises(
        InputError, match=r"needs tensorflow_datasets.*pip install.*\[corpora\]"
    ):
        wmt14.pairs("de", "train")


# Weights.


def test_each_pattern_of_text_has_a_weight(folder):
    write(a_en=b"a\n", b1_en=b"b\n", b2_en=b"c\n", a_de=b"A\n", b_de=b"B\n")
    write(c_de=b"C\n")
    corpus = corpora.from_text_files(train=("a.en,b*.en", "a.de,b.de,c.de"))
    weighted = corpora.weighted(corpus, "2,.5")
    assert weighted.weights == (2.0, 0.5)
    assert [list(read()) for read in weighted.train_parts] == [
        [("a", "A")],
        [("b", "B"), ("c", "C")],
    ]
    assert list(weighted.pairs("train")) == list(corpus.pairs("train"))


@pytest.mark.usefixtures("small_embedded")
def test_each_name_of_a_corpus_has_a_weight():
    corpus = corpora.weighted(corpora.named("embedded,embedded"), "1,3")
    first, second = (next(iter(read())) for read in corpus.train_parts)
    assert first == second == next(iter(corpus.pairs("train")))
    assert corpus.weights == (1.0, 3.0)


@pytest.mark.parametrize("weights", ["1,1", "0.3,0.3"])
def test_equal_weights_are_none(weights):
    corpus = corpora.named("embedded,embedded")
    assert corpora.weighted(corpus, weights).weights == ()
    assert corpora.weighted(corpora.named("embedded"), "5").weights == ()


@pytest.mark.parametrize(
    ("weights", "message"),
    [
        ("1,0", "must be numbers above 0 with commas between them; received"),
        ("1,-2", "numbers above 0"),
        ("1,nan", "numbers above 0"),
        ("1,inf", "numbers above 0"),
        ("1,", "numbers above 0"),
        ("1,x", "numbers above 0"),
        ("1", "--train_trees, 2 in all; received --corpus_weights=1"),
        ("1,2,3", "2 in all; received --corpus_weights=1,2,3"),
    ],
)
def test_wrong_weights_are_refused(weights, message):
    corpus = corpora.named("embedded,embedded")
    with pytest.raises(InputError, match=message):
        corpora.weighted(corpus, weights)


def test_standard_input_that_is_closed_is_refused(monkeypatch):
    monkeypatch.setattr(sys, "stdin", None)
    for path in (None, "-"):
        with pytest.raises(InputError, match="is closed: give --input"):
            text_files.input_lines(path)


def test_standard_input_that_cannot_be_read_is_named(monkeypatch, tmp_path):
    with open(tmp_path / "only_written", "wb") as file:
        stdin = open(file.fileno(), encoding="utf-8", closefd=False)  # noqa: SIM115
        monkeypatch.setattr(sys, "stdin", stdin)
        lines, _ = text_files.input_lines(None)
        with pytest.raises(InputError, match="standard input cannot be read"):
            list(lines)
