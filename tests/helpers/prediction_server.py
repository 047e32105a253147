"""Serves a SavedModel as a PredictionService, as TensorFlow Serving does.

    prediction_server.py EXPORT

EXPORT is the folder of one version. The server runs the warm-up requests,
prints the port that it listens on, and answers until its standard input ends.
Requests that wait at the same time are answered in one batch. It uses
TensorFlow, tensorflow-text's ops and the service's protocol, and nothing of
this project.
"""

import concurrent.futures
import contextlib
import pathlib
import queue
import sys
import threading

import grpc
import tensorflow as tf
import tensorflow_text  # noqa: F401  The ops of the tokenizer.
from tensorflow_serving.apis import (
    predict_pb2,
    prediction_log_pb2,
    prediction_service_pb2_grpc,
)

_LARGEST_BATCH = 1024  # Rows.
_WAIT_S = 0.002


class Batcher:
    """Runs one signature on all waiting requests, in a thread of its own."""

    def __init__(self, signature):
        self.signature, self.waiting = signature, queue.Queue()
        threading.Thread(target=self._loop, daemon=True).start()

    def __call__(self, inputs):
        future = concurrent.futures.Future()
        self.waiting.put((inputs, future))
        return future.result()

    def _loop(self):
        while True:
            batch, rows = [], 0
            with contextlib.suppress(queue.Empty):
                while rows < _LARGEST_BATCH:
                    wait_s = _WAIT_S if batch else None
                    batch.append(self.waiting.get(timeout=wait_s))
                    rows += _num_rows(batch[-1][0])
            try:
                self._answer(*zip(*batch, strict=True))
            except Exception as error:
                for _, future in batch:
                    future.set_exception(error)

    def _answer(self, inputs, futures):
        joined = {k: tf.concat([i[k] for i in inputs], 0) for k in inputs[0]}
        outputs = self.signature(**joined)
        sizes = [_num_rows(i) for i in inputs]
        parts = {k: tf.split(v, sizes) for k, v in outputs.items()}
        for n, future in enumerate(futures):
            future.set_result({k: part[n] for k, part in parts.items()})


def _num_rows(inputs):
    return len(next(iter(inputs.values())))


class Service(prediction_service_pb2_grpc.PredictionServiceServicer):
    """Answers PredictRequests."""

    def __init__(self, path):
        self.model = tf.saved_model.load(str(path))
        self.batchers = {
            name: Batcher(signature)
            for name, signature in self.model.signatures.items()
        }

    def Predict(self, request, context):
        name = request.model_spec.signature_name or "serving_default"
        if name not in self.batchers:
            context.abort(grpc.StatusCode.INVALID_ARGUMENT, f"no {name}")
        inputs = {k: tf.make_ndarray(v) for k, v in request.inputs.items()}
        if _num_rows(inputs) > _LARGEST_BATCH:
            context.abort(grpc.StatusCode.INVALID_ARGUMENT, "too many rows")
        try:
            outputs = self.batchers[name](inputs)
        except tf.errors.InvalidArgumentError as error:
            context.abort(grpc.StatusCode.INVALID_ARGUMENT, error.message)
        response = predict_pb2.PredictResponse()
        for key, tensor in outputs.items():
            response.outputs[key].CopyFrom(tf.make_tensor_proto(tensor))
        return response

    def warm_up(self, path):
        """Runs the requests of a file of PredictionLogs."""
        for record in tf.data.TFRecordDataset(str(path)):
            log = prediction_log_pb2.PredictionLog.FromString(record.numpy())
            self.Predict(log.predict_log.request, context=None)


def main():
    sys.modules["t2t_lite"] = None  # Importing it fails.
    export = pathlib.Path(sys.argv[1])
    service = Service(export)
    service.warm_up(export / "assets.extra" / "tf_serving_warmup_requests")
    server = grpc.server(concurrent.futures.ThreadPoolExecutor(32))
    prediction_service_pb2_grpc.add_PredictionServiceServicer_to_server(
        service, server
    )
    print(server.add_insecure_port("127.0.0.1:0"), flush=True)
    server.start()
    sys.stdin.read()


if __name__ == "__main__":
    main()
