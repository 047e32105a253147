"""WMT 2014 English-German and English-French, through TensorFlow Datasets.

In TFDS, `wmt14_translate` has English as its target, as WMT names its files;
here it is the source, as in the paper (section 5.1). Its splits are all of the
training data, newstest2013 and newstest2014: for German, those of the paper.
For French, the paper has 36 million pairs, about a tenth fewer than WMT, and
names no dev set. TFDS decides where it keeps them: in `$TFDS_DATA_DIR`, or else
in `~/tensorflow_datasets`.
"""

import itertools
import os
import threading
import time
from collections.abc import Iterator
from urllib.parse import urlsplit

from t2t_lite.errors import InputError, require_extra

TFDS_SPLITS = {"train": "train", "dev": "validation", "test": "test"}
PROBE_SECONDS = 10
_PAIRS_PER_READ = 1024


def pairs(language: str, split: str) -> Iterator[tuple[str, str]]:
    """Yields (English, `language`) sentences, always in the same order.

    The first use downloads the corpus and prepares it on disk. If its hosts
    are out of reach, an error says so within seconds: TFDS by itself keeps
    trying for minutes.

    Args:
        language: "de" or "fr".
        split: "train", "dev" (newstest2013) or "test" (newstest2014).

    Raises:
        InputError: TFDS is not installed, the corpus is not on disk and cannot
            be downloaded, or what is on disk is damaged.
    """
    if split not in TFDS_SPLITS:
        raise InputError(
            f"split must be one of {', '.join(TFDS_SPLITS)}; received {split!r}"
        )
    builder = _prepared(language)
    return _stream(builder, language, TFDS_SPLITS[split])


def _prepared(language: str):
    """Returns the TFDS builder of a corpus that is on disk."""
    builder = _tensorflow_datasets().builder(
        f"wmt14_translate/{language}-en",
        data_dir=os.environ.get("TFDS_DATA_DIR"),
    )
    if not builder.data_path.exists():  # TFDS renames it into place, complete.
        _require_hosts(builder, language)
        _download(builder)
    return builder


def _tensorflow_datasets():
    require_extra("tensorflow_datasets", "corpora")
    require_extra("importlib_resources", "corpora")  # TFDS does not ask for it.
    try:
        import tensorflow_datasets
    except ImportError as error:
        raise InputError(
            f"tensorflow-datasets is installed but cannot be imported: {error}"
        ) from error
    return tensorflow_datasets


def _require_hosts(builder, language: str) -> None:
    """Raises InputError if a host of the download does not answer."""
    urls = {urlsplit(url).netloc: url for url in _urls(builder, language)}
    failures = _failures(urls)
    if failures:
        raise InputError(
            f"the corpus is not in {builder.data_dir} and cannot be downloaded"
            f" from {', '.join(failures)}; copy that directory from a machine "
            "with a network, or give files of your own with --train_source "
            "and --train_target"
        )


def _urls(builder, language: str) -> list[str]:
    """Returns the addresses TFDS downloads this corpus from."""
    from tensorflow_datasets.translate import wmt

    subsets = itertools.chain.from_iterable(builder.subsets.values())
    return [
        url
        for subset in subsets
        for url in wmt.DATASET_MAP[subset].get_url(language)
    ]


def _failures(urls: dict[str, str]) -> list[str]:
    """Returns "host (reason)" for each host that fails to serve its URL."""
    reasons = dict.fromkeys(urls, f"no answer in {PROBE_SECONDS} s")
    # Threads, because looking up a host's name has no time limit of its own.
    threads = [
        threading.Thread(target=_ask, args=(*item, reasons), daemon=True)
        for item in urls.items()
    ]
    deadline = time.monotonic() + PROBE_SECONDS
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(max(0, deadline - time.monotonic()))
    return [f"{host} ({why})" for host, why in reasons.items() if why]


def _ask(host: str, url: str, reasons: dict[str, str]) -> None:
    """Asks for `url`, reading none of it; notes why that failed, or ""."""
    import requests  # The client of TFDS: same proxies, same certificates.

    try:
        with requests.get(url, stream=True, timeout=PROBE_SECONDS) as response:
            status = response.status_code
            reasons[host] = "" if response.ok else f"HTTP {status}"
    except requests.Timeout:
        pass  # The reason noted beforehand.
    except requests.RequestException as error:
        reasons[host] = type(error).__name__


def _download(builder) -> None:
    """Downloads the corpus and writes it to `builder.data_dir`."""
    try:
        builder.download_and_prepare()
    except Exception as error:  # TFDS has no common base for its failures.
        raise InputError(
            f"{builder.info.full_name} could not be prepared in "
            f"{builder.data_dir}: {_one_line(error)}"
        ) from error


def _stream(builder, language: str, split: str) -> Iterator[tuple[str, str]]:
    import tensorflow as tf

    try:
        for batch in _batches(builder, split):
            columns = batch["en"].tolist(), batch[language].tolist()
            for source, target in zip(*columns, strict=True):
                yield source.decode("utf-8"), target.decode("utf-8")
    except (KeyError, ValueError, tf.errors.OpError) as error:
        raise InputError(
            f"{builder.data_dir} is damaged; delete it to have it prepared "
            f"again: {_one_line(error)}"
        ) from error


def _batches(builder, split: str):
    return _tensorflow_datasets().as_numpy(
        builder.as_dataset(
            split=split, batch_size=_PAIRS_PER_READ, shuffle_files=False
        )
    )


def _one_line(error: Exception) -> str:
    return " ".join(f"{type(error).__name__}: {error}".split())
