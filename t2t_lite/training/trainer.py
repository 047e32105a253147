"""One update of the model, on any number of replicas and micro-batches.

The gradient of an update is the sum over all its target tokens, divided once by
their number. How the batch is divided over replicas and micro-batches changes
only the rounding and the dropout masks.
"""

from collections.abc import Callable, Sequence
from contextlib import nullcontext
from typing import Any

import keras
import numpy as np
import tensorflow as tf

from t2t_lite.hparams import HParams
from t2t_lite.model import loss
from t2t_lite.model.multi_head_attention import record_weights
from t2t_lite.model.transformer import Transformer, shift_right
from t2t_lite.storage import model_directory
from t2t_lite.training import optimizer
from t2t_lite.training.divergence import DivergenceError
from t2t_lite.training.dropout_seeds import seeded_dropout, update_seed
from t2t_lite.training.gradient_norms import GradientNorms
from t2t_lite.training.guided_alignment import guided_loss
from t2t_lite.training.loss_scale import LossScale
from t2t_lite.training.strategies import (
    first_local,
    has_other_workers,
    on_replicas,
    sum_over_replicas,
    value_from_chief,
)
from t2t_lite.training.sums import Sums
from t2t_lite.training.update import Update


class Trainer:
    """A model, its optimizer, and the update of both.

    Args:
        hparams: HParams.
        vocabulary_size: int.
        strategy: tf.distribute.Strategy; the current one if not given.
        precision: "float32", "bfloat16" or "float16", of the computation;
            weights, softmax and loss are always float32.
        xla: bool, whether XLA compiles the forward and backward pass.
        num_target_ids: int, that of Transformer.
        num_parts: int, how many parts of a micro-batch are computed side by
            side.
        chunk_logits: int, that of `projected_cross_entropy`.
    """

    def __init__(
        self,
        hparams: HParams,
        vocabulary_size: int,
        strategy: tf.distribute.Strategy | None = None,
        *,
        precision: str = "float32",
        xla: bool = False,
        num_target_ids: int | None = None,
        num_parts: int = 1,
        chunk_logits: int | None = None,
    ):
        self.hparams, self.num_parts = hparams, num_parts
        self.chunk_logits, self.is_compiled = chunk_logits, xla
        self.strategy = strategy or tf.distribute.get_strategy()
        self.has_other_workers = has_other_workers(self.strategy)
        self.step = 0  # Updates done.
        self.is_scaled = precision == "float16"
        self.loss_scale = self._first_loss_scale
        self._stop_requests = tf.constant(0.0)
        self._is_traced = False
        keras.utils.set_random_seed(hparams.seed)
        with self.strategy.scope():
            self.model = Transformer(
                hparams,
                vocabulary_size,
                num_target_ids,
                dtype=model_directory.training_policy(precision),
            )
            self.model.build()
            self.weights = self.model.trainable_variables
            self.gradient_norms = GradientNorms([w.path for w in self.weights])
            self.schedule = optimizer.schedule(hparams)
            self.optimizer = optimizer.adam(hparams, gradients_are_summed=True)
            self.optimizer.build(self.weights)
            self.sums = Sums.zeros(weight.shape for weight in self.weights)
        self._build_graphs(xla)

    def _build_graphs(self, xla: bool) -> None:
        ids = tf.TensorSpec([None, None], tf.int32)
        seed = tf.TensorSpec([2], tf.int64)
        signature = [ids, ids, seed, tf.TensorSpec([])]
        if self.hparams.guided_alignment:
            signature.append(tf.TensorSpec([None, None, None], tf.uint8))
        add = tf.function(
            self._add_shard,
            input_signature=signature,
            jit_compile=xla or None,
            autograph=False,
        )
        self._run_add = on_replicas(
            self.strategy,
            lambda shard, scale: add(*shard[:3], scale, *shard[3:]),
            # Otherwise the first shape would get its own graph, optimized in
            # ways that round differently: a resumed run, which sees another
            # shape first, would drift from the one that it resumes.
            [self._spec_of_shards(), tf.TensorSpec([])],
        )
        self._run_apply = on_replicas(self.strategy, self._apply)
        self._run_is_finite = on_replicas(
            self.strategy, self.sums.gradients_are_finite
        )
        self._run_clear = on_replicas(self.strategy, self.sums.clear)

    def update(
        self,
        source_ids: np.ndarray,
        target_ids: np.ndarray,
        num_micro_batches: int = 1,
        should_stop: Callable[[], bool] = lambda: False,
        is_linked: np.ndarray | None = None,
    ) -> Update | None:
        """Does one update; returns an Update, or None if it was given up.

        Args:
            source_ids: int32 array [B, S], the batch of all replicas.
            target_ids: int32 array [B, T].
            num_micro_batches: int, how many parts each replica takes in turn.
            should_stop: returns whether this process wants to stop. If it is
                the only one, it gives up the update between two micro-batches,
                which leaves no trace. One of several workers finishes the
                update, and `agree_to_stop` then tells all of them.
            is_linked: uint8 array [B, T, S], which tokens are linked, for
                guided alignment; None if no words are aligned.

        Raises:
            DivergenceError: float16 cannot hold the gradients at any loss
                scale.
        """
        batch = source_ids, target_ids
        is_added = False
        while not is_added:
            scale = self.loss_scale.scale
            for n in range(num_micro_batches):
                if should_stop() and not self.has_other_workers:
                    self.clear()
                    return None
                self.add(*batch, n, num_micro_batches, is_linked)
            is_added = not self.is_scaled or self._fits_loss_scale(batch)
        stop_request = float(should_stop())
        totals = self._run_apply(tf.constant(scale), tf.constant(stop_request))
        mean_loss, tokens, norms, self._stop_requests = (
            first_local(self.strategy, total) for total in totals
        )
        self.step += 1
        return Update(mean_loss, tokens, norms, self.step, batch)

    def agree_to_stop(self) -> bool:
        """Returns whether any worker wanted to stop in the last update.

        Every worker gets the same answer after the same update, because the
        requests are summed in the reduction that an update needs anyway.
        """
        return self.has_other_workers and float(self._stop_requests) > 0

    def add(
        self,
        source_ids: np.ndarray,
        target_ids: np.ndarray,
        n: int = 0,
        num_micro_batches: int = 1,
        is_linked: np.ndarray | None = None,
    ) -> None:
        """Adds the n-th micro-batch of a batch to the sums of an update.

        Args:
            source_ids: int32 array [B, S], the batch of all replicas.
            target_ids: int32 array [B, T].
            n: int, from 0.
            num_micro_batches: int, how many there are.
            is_linked: that of `update`.
        """
        batch = self._batch(source_ids, target_ids, is_linked)
        shards = self._shards(batch, n, num_micro_batches)
        self._run_add(shards, tf.constant(self.loss_scale.scale))

    def _batch(
        self,
        source_ids: np.ndarray,
        target_ids: np.ndarray,
        is_linked: np.ndarray | None = None,
    ) -> list[np.ndarray]:
        """Returns the arrays of a batch, with links if alignment is guided."""
        if not self.hparams.guided_alignment:
            return [source_ids, target_ids]
        if is_linked is None:
            shape = *target_ids.shape, source_ids.shape[1]
            is_linked = np.zeros(shape, np.uint8)
        return [source_ids, target_ids, is_linked]

    def _shards(
        self, batch: list[np.ndarray], n: int, num_micro_batches: int
    ) -> tuple:
        """Returns what each replica is given of the n-th micro-batch."""
        replicas = self.strategy.num_replicas_in_sync
        num_shards = replicas * num_micro_batches
        seed = update_seed(self.hparams.seed, self.step)

        def shard(context: tf.distribute.experimental.ValueContext) -> tuple:
            index = n * replicas + context.replica_id_in_sync_group
            sources, targets, *links = (
                _shard(array, index, num_shards, self.num_parts)
                for array in batch
            )
            seeds = tf.constant([seed, index], tf.int64)
            return sources, targets, seeds, *links

        return self.strategy.experimental_distribute_values_from_function(shard)

    def _spec_of_shards(self) -> Any:
        """Returns the type of `_shards` that covers all shapes."""
        first, second = (
            tf.nest.map_structure(
                tf.type_spec_from_value,
                self._shards(self._batch(ids, ids), 0, 1),
            )
            for ids in map(self._padding, (1, 2))
        )
        return tf.nest.map_structure(
            lambda one, other: one.most_specific_common_supertype([other]),
            first,
            second,
        )

    def _padding(self, length: int) -> np.ndarray:
        """Returns int32 zeros, `length` rows of that length for each part."""
        num_parts = self.strategy.num_replicas_in_sync * self.num_parts
        return np.zeros((length * num_parts, length), np.int32)

    def clear(self) -> None:
        """Forgets what was added since the last update."""
        self._run_clear()

    def trace(self) -> None:
        """Traces all graphs of an update once, before the first update.

        What was added is forgotten. XLA compiles the graphs later, for each
        shape that it meets.

        Raises:
            ValueError: there was an update.
        """
        if not self._is_traced:
            self.rehearse_apply()
            ids = self._padding(1)
            self.add(ids, ids)
            self.clear()
            self._is_traced = True

    def wait(self) -> None:
        """Waits until all that was added has been computed."""
        first_local(
            self.strategy, self.strategy.run(self.sums.loss.read_value)
        ).numpy()

    def rehearse_apply(self) -> None:
        """Does what ends an update, without gradients, and waits for it.

        Before the first update this leaves no trace: sums and Adam's moments
        are zero, so the weights stay the same.

        Raises:
            ValueError: there was an update.
        """
        if self.step:
            raise ValueError(f"there were {self.step} updates")
        self.clear()
        totals = self._run_apply(tf.constant(1.0), tf.constant(0.0))
        first_local(self.strategy, totals[0]).numpy()
        self.optimizer.iterations.assign(0)

    def _add_shard(
        self,
        source_ids: tf.Tensor,
        target_ids: tf.Tensor,
        seed: tf.Tensor,
        scale: tf.Tensor,
        *is_linked: tf.Tensor,
    ) -> None:
        """Adds a shard's loss and gradient to the sums of this replica.

        Args:
            source_ids: int32 [B, S], B a multiple of `num_parts`.
            target_ids: int32 [B, T].
            seed: int64 [2], the dropout seed and the index of the shard.
            scale: float32 [], of the loss.
            *is_linked: uint8 [B, T, S], if alignment is guided.
        """
        P = self.num_parts
        # Rows in turn, so that none of the parts waits for another.
        parts = [
            self._loss_and_gradients(
                source_ids[n::P],
                target_ids[n::P],
                tf.stack([seed[0], seed[1] * P + n]),
                scale,
                *(each[n::P] for each in is_linked),
            )
            for n in range(P)
        ]
        for total, *values in zip(self.sums.variables, *parts, strict=True):
            total.assign_add(tf.add_n(values))

    def _loss_and_gradients(
        self,
        source_ids: tf.Tensor,
        target_ids: tf.Tensor,
        seed: tf.Tensor,
        scale: tf.Tensor,
        *is_linked: tf.Tensor,
    ) -> list[tf.Tensor]:
        """Returns the sum of the loss, the number of tokens, the gradients."""
        with (
            seeded_dropout(self.model, seed),
            tf.GradientTape() as tape,
            record_weights() if is_linked else nullcontext() as recorded,
        ):
            x_BTD = self.model.decode(
                (source_ids, shift_right(target_ids)), training=True
            )
            loss_sum, tokens = loss.projected_cross_entropy(
                *self.model.output_embedding.factors(
                    x_BTD, self.model.num_target_ids
                ),
                target_ids,
                self.hparams.label_smoothing,
                scale if self.is_scaled else None,
                self.chunk_logits,
            )
            for links in is_linked:
                loss_sum += guided_loss(self.model, recorded, target_ids, links)
            scaled_loss = loss_sum * scale
        gradients = tape.gradient(scaled_loss, [w.value for w in self.weights])
        return [loss_sum, tokens, *map(tf.convert_to_tensor, gradients)]

    def _apply(
        self, scale: tf.Tensor, stop_request: tf.Tensor
    ) -> tuple[tf.Tensor, tf.Tensor, tf.Tensor, tf.Tensor]:
        """Updates the weights by the sums of all replicas, and clears the sums.

        Returns:
            the mean loss, the number of tokens, the norms of the gradients [G],
            and on how many replicas the process wants to stop; each is float32,
            and [] unless a shape is given.
        """
        loss_sum, tokens, stop_requests = sum_over_replicas(
            [self.sums.loss, self.sums.tokens, stop_request]
        )
        divisor = tf.maximum(tokens, 1.0) * scale
        gradients = sum_over_replicas(
            [total / divisor for total in self.sums.gradients]
        )
        self.optimizer.apply(gradients, self.weights)
        self.sums.clear()
        return (
            loss_sum / tf.maximum(tokens, 1.0),
            tokens,
            self.gradient_norms(gradients),
            stop_requests,
        )

    def _fits_loss_scale(self, batch: tuple[np.ndarray, np.ndarray]) -> bool:
        """Returns whether float16 held the gradients; adapts the loss scale.

        If not, the sums are cleared, so that the same batch can be tried again
        with half the scale.
        """
        is_finite = bool(first_local(self.strategy, self._run_is_finite()))
        adapted = self.loss_scale.after(is_finite)
        if adapted.is_too_small:
            raise self._divergence(batch)
        self.loss_scale = adapted
        if not is_finite:
            self.clear()
        return is_finite

    def _divergence(
        self, batch: tuple[np.ndarray, np.ndarray]
    ) -> DivergenceError:
        """Returns the error for gradients that no loss scale makes finite.

        They are the gradients that were added, and they are cleared.
        """
        loss_sum, tokens, *_ = self._totals()
        failed = Update(
            loss=loss_sum / tf.maximum(tokens, 1.0),
            tokens=tokens,
            gradient_norms=self.gradient_norms(self.gradients()),
            step=self.step + 1,
            batch=batch,
        )
        self.clear()
        reason = "the gradients are not finite at any loss scale"
        return DivergenceError(reason, failed.step, failed)

    def gradients(self) -> list[tf.Tensor]:
        """Returns the gradients of the loss over all that was added.

        Returns:
            list of float32 tensors, one for each of `weights`, in nats a token.
        """
        _, tokens, *totals = self._totals()
        return [total / (tokens * self.loss_scale.scale) for total in totals]

    def _totals(self) -> list[tf.Tensor]:
        """Returns the totals of `Sums.variables` over all replicas."""
        parts = self.strategy.run(
            lambda: [tf.identity(total) for total in self.sums.variables]
        )
        return [
            self.strategy.reduce(tf.distribute.ReduceOp.SUM, part, axis=None)
            for part in parts
        ]

    def learning_rate(self, step: int) -> float:
        """Returns the rate of update number `step`, counted from 1."""
        return float(self.schedule(step - 1))

    def weights_are_finite(self) -> bool:
        """Returns whether no weight is NaN or infinite."""
        totals = [tf.reduce_sum(tf.abs(w.value)) for w in self.weights]
        return bool(tf.reduce_all(tf.math.is_finite(tf.stack(totals))))

    @property
    def _variables(self) -> Sequence[keras.Variable]:
        return [*self.weights, *self.optimizer.variables]

    def tensors(self) -> dict[str, Any]:
        """Returns all that a later Trainer needs to `restore` this state."""
        scale = self.loss_scale.scale if self.is_scaled else 0.0
        return model_directory.named_tensors(self._variables) | {
            "step": np.int64(self.step),
            "loss_scale": np.float32(scale),
            "updates_since_scaled": np.int64(
                self.loss_scale.updates_since_scaled
            ),
        }

    def restore(self, tensors: dict[str, Any], description: str) -> None:
        """Restores the state that `tensors` returned.

        Args:
            tensors: dict of str to tensor or array.
            description: of where they come from.

        Raises:
            InputError: they are not those of this model.
        """
        model_directory.assign(self._variables, tensors, description)
        self.step = int(tensors["step"])
        scale = float(tensors.get("loss_scale", 0))
        if self.is_scaled and scale > 0:
            updates = int(tensors.get("updates_since_scaled", 0))
            self.loss_scale = LossScale(scale, updates)

    def reset(self) -> None:
        """Restores the state before the first update."""
        keras.utils.set_random_seed(self.hparams.seed)
        first = Transformer.from_config(self.model.get_config())
        first.build()
        for weight, before in zip(
            self.weights, first.trainable_variables, strict=True
        ):
            weight.assign(before.value)
        for variable in self.optimizer.variables:
            variable.assign(tf.zeros_like(variable.value))
        self.step, self.loss_scale = 0, self._first_loss_scale

    @property
    def _first_loss_scale(self) -> LossScale:
        return LossScale() if self.is_scaled else LossScale(1.0)

    def copy_from_chief(self) -> None:
        """Gives every worker the chief's weights, optimizer and step."""
        if not self.has_other_workers:
            return
        for variable in self._variables:
            variable.assign(value_from_chief(self.strategy, variable.value))
        step, scale, updates = (
            value_from_chief(self.strategy, value)
            for value in (self.step, *self.loss_scale)
        )
        self.step = int(step)
        self.loss_scale = LossScale(float(scale), int(updates))


def _shard(
    array: np.ndarray, index: int, num_shards: int, num_parts: int
) -> tf.Tensor:
    """Returns every num_shards-th row from row `index` on, [R, ...].

    All shards have the same size, which `num_parts` divides.
    """
    rows = -(-len(array) // (num_shards * num_parts)) * num_parts
    part = array[index::num_shards]
    whole = [(0, 0)] * (part.ndim - 1)
    return tf.constant(np.pad(part, [(0, rows - len(part)), *whole]))
