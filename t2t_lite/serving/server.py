"""Serves a model on this machine as TensorFlow Serving would, with a page.

It is for trying a model; TensorFlow Serving is for production.
"""

import asyncio
import importlib.resources
import os
import socket
import sys
from collections.abc import Awaitable, Callable
from typing import Any

import tensorflow as tf
from absl import logging
from aiohttp import log as web_log
from aiohttp import web
from tensorflow.core.framework import types_pb2

from t2t_lite.errors import InputError, reason, require
from t2t_lite.serving import rest
from t2t_lite.serving.batched import UNBATCHED, BatchedModel, TooBusyError
from t2t_lite.serving.opening import Opened

Handler = Callable[[web.Request], Awaitable[web.StreamResponse]]
_MOST_BYTES = 1 << 18  # of a request's body: others wait for it
_MOST_TEXTS = 1024  # of a request, as with TensorFlow Serving
_MOST_UNBATCHED = 64  # of one whose answer is long
_CONTENT_SECURITY = "frame-ancestors 'none'"  # Besides what the page forbids.


class Server:
    """The REST API of a model, and a page that uses it.

    Source: https://www.tensorflow.org/tfx/serving/api_rest

    Args:
        name: of the model, in its addresses.
        opened: the model.
        timeout_seconds: how long a request may take, and how long a server
            that is stopped waits for requests in progress.
    """

    def __init__(self, name: str, opened: Opened, timeout_seconds: float):
        self._name, self._opened = name, opened
        self._inputs = {n: _inputs(f) for n, f in opened.signatures.items()}
        self._model = BatchedModel(opened.signatures)
        self._described: dict[str, Any] | None = None  # its signatures
        self._timeout = timeout_seconds
        self._warming: asyncio.Task | None = None

    def run(self, bound: socket.socket) -> None:
        """Serves until SIGINT or SIGTERM, and finishes what was asked by then.

        Prints the address once the model can answer.

        Args:
            bound: the socket to listen on.
        """
        address = f"http://localhost:{bound.getsockname()[1]}/"
        logging.info("Serving %s until Ctrl-C.", self._name)
        # aiohttp's logger takes a faulty body for an error of this program.
        web_log.server_logger.setLevel("CRITICAL")
        web.run_app(
            self.app(),
            sock=bound,
            access_log=None,
            handler_cancellation=True,  # For clients that are gone.
            shutdown_timeout=self._timeout,
            print=lambda _: print(address, flush=True),
        )
        if self._model.is_computing:  # What nobody waits for anymore.
            sys.stderr.flush()
            os._exit(0)  # Python's own exit would wait for it.

    def app(self) -> web.Application:
        """Returns the application that aiohttp runs."""
        app = web.Application(
            middlewares=[_errors_as_json, self._handle],
            client_max_size=_MOST_BYTES,
        )
        app.on_startup.append(self._warm_up)
        app.on_shutdown.append(self._stop)
        app.router.add_get("/", self._page)
        model = f"/v1/models/{self._name}"
        for path in (model, f"{model}/versions/{self._opened.version}"):
            app.router.add_get(path, self._status)
            app.router.add_get(f"{path}/metadata", self._metadata)
            app.router.add_post(f"{path}:predict", self._predict)
        return app

    @web.middleware
    async def _handle(
        self, request: web.Request, handler: Handler
    ) -> web.StreamResponse:
        try:
            async with asyncio.timeout(self._timeout):
                return await handler(request)
        except TimeoutError:
            raise web.HTTPGatewayTimeout(
                text=f"no answer within {self._timeout:g} seconds"
            ) from None
        except web.HTTPNotFound:
            raise web.HTTPNotFound(
                text=f"{request.path} does not exist: the model is at "
                f"/v1/models/{self._name} (version {self._opened.version}), "
                "with :predict and /metadata"
            ) from None

    async def _warm_up(self, _: web.Application) -> None:
        """Gets the default signature ready, and starts on the others."""
        await self._call(rest.DEFAULT_SIGNATURE)
        self._warming = asyncio.create_task(self._warm_up_others())

    async def _warm_up_others(self) -> None:
        """Calls one signature after another: requests can get in between."""
        for signature in self._inputs:
            try:
                await self._call(signature)
            except Exception as error:  # Whoever asks for it is told, too.
                what = reason(error)
                logging.warning("The signature %s fails: %s", signature, what)

    async def _call(self, signature: str) -> None:
        columns = {name: [b"a"] for name in self._inputs[signature]}
        await self._model.predict(signature, columns)

    async def _stop(self, _: web.Application) -> None:
        logging.info("Stopping after the requests in progress are answered.")
        if self._warming is not None:
            self._warming.cancel()

    async def _page(self, request: web.Request) -> web.StreamResponse:
        if "model" not in request.query:
            raise web.HTTPFound(request.rel_url.update_query(model=self._name))
        page = importlib.resources.files(__package__) / "page.html"
        return web.Response(
            text=page.read_text("utf-8"),
            content_type="text/html",
            headers={"Content-Security-Policy": _CONTENT_SECURITY},
        )

    async def _status(self, _: web.Request) -> web.Response:
        return _json(rest.status(self._opened.version))

    async def _metadata(self, _: web.Request) -> web.Response:
        if self._described is None:
            self._described = await self._model.run(self._describe)
        version = self._opened.version
        return _json(rest.metadata(self._name, version, self._described))

    def _describe(self) -> dict[str, Any]:
        return {n: _described(f) for n, f in self._opened.signatures.items()}

    async def _predict(self, request: web.Request) -> web.Response:
        asked = rest.parse(await request.read(), self._inputs)
        most = _MOST_UNBATCHED if asked.signature in UNBATCHED else _MOST_TEXTS
        rule = f"a request for {asked.signature} may have up to {most} texts"
        num_texts = rest.count_texts(asked.columns)
        require(rule, num_texts <= most, texts=num_texts)
        try:
            outputs = await self._model.predict(asked.signature, asked.columns)
        except TooBusyError:
            raise web.HTTPServiceUnavailable(
                text="too many texts are waiting: try again later"
            ) from None
        # It may be long, and others are answered in the meantime.
        return _json(
            await asyncio.to_thread(rest.answer, outputs, asked.has_rows)
        )


def _json(text: str, status: int = 200) -> web.Response:
    return web.Response(
        text=text, status=status, content_type="application/json"
    )


@web.middleware
async def _errors_as_json(
    request: web.Request, handler: Handler
) -> web.StreamResponse:
    """Answers errors as TensorFlow Serving does: {"error": message}."""
    try:
        return await handler(request)
    except InputError as error:
        return _json(rest.error(str(error)), 400)
    except web.RequestPayloadError as error:
        what = reason(error)
        return _json(rest.error(f"the body cannot be read: {what}"), 400)
    except web.HTTPException as error:
        if error.status < 400:
            raise
        allowed = error.headers.get("Allow")
        if allowed is None:
            return _json(rest.error(error.text), error.status)
        methods = allowed.replace(",", " or ")
        text = rest.error(f"{error.text}: use {methods}")
        response = _json(text, error.status)
        response.headers["Allow"] = allowed
        return response
    except Exception as error:  # One client's trouble must not end the server.
        logging.exception("A request failed.")
        return _json(rest.error(f"the model failed: {reason(error)}"), 500)


def _inputs(function: Callable) -> list[str]:
    """Returns the names of a signature's inputs."""
    if isinstance(function, tf.types.experimental.ConcreteFunction):
        return sorted(function.structured_input_signature[1])
    return [spec.name for spec in function.input_signature]


def _described(function: Callable) -> dict[str, Any]:
    """Returns the inputs and outputs of a signature: {kind: {name: spec}}."""
    if not isinstance(function, tf.types.experimental.ConcreteFunction):
        function = function.get_concrete_function()
    inputs = tf.nest.flatten(function.structured_input_signature)
    specs = {
        "inputs": {spec.name: spec for spec in inputs},
        "outputs": function.structured_outputs,
    }
    return {
        kind: {
            name: rest.TensorSpec(
                types_pb2.DataType.Name(spec.dtype.as_datatype_enum),
                [-1 if size is None else size for size in spec.shape],
            )
            for name, spec in kind_specs.items()
        }
        for kind, kind_specs in specs.items()
    }
