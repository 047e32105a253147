"""WMT 2014 through TFDS.

Only its download is replaced; all else is TFDS's own: what it writes to disk
and reads back, and what it would request from which host. No host is contacted:
all requests go to a proxy on this machine.
"""

import contextlib
import http.server
import shutil
import socket
import sys
import threading
import time

import pytest

from t2t_lite.errors import InputError
from t2t_lite_data import corpora, wmt14


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

    def look_up(*_, **__):
        found.wait(60)
        return []

    monkeypatch.setenv("TFDS_DATA_DIR", str(tmp_path))
    monkeypatch.setattr(wmt14, "PROBE_SECONDS", 0.2)
    monkeypatch.setattr(socket, "getaddrinfo", look_up)
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
