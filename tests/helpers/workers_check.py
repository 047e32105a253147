"""A worker that meets others and then does as it is told, for tests.

    python workers_check.py ADDRESSES INDEX MINUTES [STATUS]

Its child exits with STATUS, or waits for a signal, where there is none; on
SIGTERM it exits with 143, as a run does that has saved a checkpoint. It prints
"child NUMBER" first.
"""

import json
import os
import signal
import sys

import checkout  # noqa: F401, the code that this belongs to
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
