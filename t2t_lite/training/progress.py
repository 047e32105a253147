"""What a run says of itself while it goes on."""

import contextlib
import math
import time

import tensorflow as tf
from absl import logging

from t2t_lite.errors import InputError

_SECONDS_BETWEEN_LINES = 10


class Progress:
    """Says how training goes, and notices a loss that is not finite."""

    def __init__(self, trainer, last_step, writer):
        self.trainer, self.last_step, self.writer = trainer, last_step, writer
        self.pending = []
        self.begun_step, self.begun_at = trainer.step, None
        self.said_at = 0.0
        self._start()

    def _start(self):
        self.started_at, self.loss_sum, self.tokens = time.monotonic(), 0.0, 0.0

    @contextlib.contextmanager
    def paused(self):
        """Leaves what happens inside out of the speed."""
        start = time.monotonic()
        yield
        elapsed = time.monotonic() - start
        self.started_at += elapsed
        if self.begun_at is not None:
            self.begun_at += elapsed

    def add(self, update):
        """Takes an Update in; says a line if one is due."""
        self.pending.append(update)
        if self.begun_at is None:  # The first update builds the graphs.
            self.begun_at, self.begun_step = time.monotonic(), self.trainer.step
        if time.monotonic() - self.said_at >= _SECONDS_BETWEEN_LINES:
            self.flush()
            self._say()

    def flush(self):
        """Reads the losses that are still on the device.

        Raises:
            InputError: one of them is not finite.
        """
        first = self.trainer.step - len(self.pending) + 1
        pending, self.pending = self.pending, []
        for n, update in enumerate(pending):
            loss, tokens = float(update.loss), float(update.tokens)
            if not math.isfinite(loss):
                raise InputError(
                    not_finite("the loss is", self.trainer, first + n)
                )
            self.loss_sum += loss * tokens
            self.tokens += tokens

    def _say(self):
        now, step = time.monotonic(), self.trainer.step
        loss = self.loss_sum / max(self.tokens, 1.0)
        speed = self.tokens / (now - self.started_at)
        rate = self.trainer.learning_rate(step)
        done = step - self.begun_step
        left = (self.last_step - step) * (now - self.begun_at) / max(done, 1)
        logging.info(
            "Step %d of %d: loss %.4f, learning rate %.2e, "
            "%.0f target tokens/s, %s left",
            *(step, self.last_step, loss, rate, speed),
            _duration(left) if done else "?",
        )
        with self.writer.as_default(step=step):
            tf.summary.scalar("train/loss", loss)
            tf.summary.scalar("train/learning_rate", rate)
            tf.summary.scalar("train/target_tokens_per_second", speed)
        self.said_at = now
        self._start()


def not_finite(what, trainer, step=None):
    step = step or trainer.step
    return (
        f"{what} not finite at step {step}, learning rate "
        f"{trainer.learning_rate(step):.2e}: the last checkpoint is unharmed; "
        "lower --override=learning_rate_scale=..., or use "
        "--precision=float32"
    )


def _duration(seconds):
    minutes, seconds = divmod(int(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours}:{minutes:02}:{seconds:02}"
