"""A worker that meets the others and then ends as it is told, for tests.

    python workers_check.py ADDRESSES INDEX MINUTES [STATUS]

Its child first prints "child PID". Then it exits with STATUS or, if none is
given, waits for a signal. On SIGTERM it exits with 143, as a run does that has
saved a checkpoint.
"""

import json
import os
import signal
import sys

import checkout  # noqa: F401, this checkout's packages
from absl import logging

from t2t_lite.errors import InputError
from t2t_lite.training import workers
from t2t_lite.training.options import RunOptions


def main(addresses, index, minutes, status=None):
    logging.set_verbosity(logging.INFO)
    workers._SECONDS_FOR_NEWS = workers._SECONDS_TO_AGREE = 0.5
    version = os.environ.get("VERSION", "1")
    workers._versions = lambda: {"t2t_lite": version}
    task = {"type": "worker", "index": int(index)}
    jobs = {"worker": addresses.split(",")}
    os.environ["TF_CONFIG"] = json.dumps({"cluster": jobs, "task": task})
    options = RunOptions(worker_timeout_minutes=float(minutes))
    try:
        workers.join_cluster(options)
    except InputError as error:
        print(f"error: {error}", file=sys.stderr)
        return 1
    signal.signal(signal.SIGTERM, lambda number, _: os._exit(128 + number))
    print(f"child {os.getpid()}", flush=True)
    if status is None:
        signal.pause()
    return int(status)


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
