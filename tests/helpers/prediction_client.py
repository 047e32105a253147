"""A client of the server in prediction_server.py."""

import os
import pathlib
import subprocess
import sys

from binaries import WITHOUT_EXTRAS
from paths import HELPERS


def lonely_environment():
    """Returns an environment without this package, GPUs, JAX or matplotlib."""
    return os.environ | {
        "CUDA_VISIBLE_DEVICES": "-1",
        "PYTHONPATH": WITHOUT_EXTRAS,
        "TF_CPP_MIN_LOG_LEVEL": "3",
    }


class Server:
    """A running prediction_server.py, and a client of it."""

    def __init__(self, path):
        import grpc
        from tensorflow_serving.apis import prediction_service_pb2_grpc

        self.process = subprocess.Popen(
            [sys.executable, "-P", HELPERS / "prediction_server.py", path],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            env=lonely_environment(),
        )
        self.address = f"127.0.0.1:{int(self.process.stdout.readline())}"
        self.stub = prediction_service_pb2_grpc.PredictionServiceStub(
            grpc.insecure_channel(self.address)
        )

    def __call__(self, signature="serving_default", **inputs):
        import tensorflow as tf
        from tensorflow_serving.apis import predict_pb2

        request = predict_pb2.PredictRequest()
        request.model_spec.signature_name = signature
        for name, texts in inputs.items():
            request.inputs[name].CopyFrom(
                tf.make_tensor_proto(texts, tf.string, [len(texts)])
            )
        response = self.stub.Predict(request, timeout=60)
        return {k: tf.make_ndarray(v) for k, v in response.outputs.items()}

    def resident_bytes(self):
        status = pathlib.Path(f"/proc/{self.process.pid}/statm").read_text()
        return int(status.split()[1]) * os.sysconf("SC_PAGE_SIZE")

    def close(self):
        self.process.communicate(timeout=60)
