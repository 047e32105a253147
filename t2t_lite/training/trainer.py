"""One update of the model, on any number of replicas and micro-batches.

The gradient of an update is the sum over all its target tokens, divided once by
their number. How the batch is divided over replicas and micro-batches changes
nothing but rounding and the dropout masks.
"""

import json
import os
from typing import NamedTuple

import keras
import numpy as np
import tensorflow as tf

from t2t_lite.errors import InputError
from t2t_lite.model import flops as training_cost
from t2t_lite.model import loss
from t2t_lite.model.transformer import Transformer, shift_right
from t2t_lite.storage import model_directory
from t2t_lite.training import optimizer as optimization

_SEEDS_PER_DROPOUT = 8  # Room for a layer that drops more than once a pass.
_FIRST_LOSS_SCALE = 2.0**15
_UPDATES_UNTIL_DOUBLED = 2000


class Update(NamedTuple):
    """What one update reports."""

    loss: tf.Tensor  # float32 [], nats a token, label smoothing included
    tokens: tf.Tensor  # float32 [], target tokens
    stops: tf.Tensor  # float32 [], replicas whose process was asked to stop


class Trainer:
    """A model, its optimizer, and the update of both.

    Args:
        hparams: HParams.
        vocabulary_size: int.
        num_target_ids: int, that of Transformer.
        strategy: tf.distribute.Strategy.
        precision: "float32", "bfloat16" or "float16", of the computation;
            weights, softmax and loss are float32 whatever it is.
        xla: bool, whether XLA compiles the forward and backward pass.
        num_parts: int, how many parts of a micro-batch are computed at the
            same time.
    """

    def __init__(
        self,
        hparams,
        vocabulary_size,
        strategy=None,
        precision="float32",
        xla=False,
        num_target_ids=None,
        num_parts=1,
    ):
        self.hparams, self.num_parts = hparams, num_parts
        self.strategy = strategy or tf.distribute.get_strategy()
        self.has_other_workers = isinstance(
            self.strategy, tf.distribute.MultiWorkerMirroredStrategy
        )
        self.step = 0  # Updates done.
        # Operations of these updates, from the first one on: what
        # `training_cost.update_flops` says of each batch, padding included and
        # however it was divided. NaN where nobody counted.
        self.flops = 0.0
        self._is_traced = False
        keras.utils.set_random_seed(hparams.seed)
        with self.strategy.scope():
            self.model = Transformer(
                hparams,
                vocabulary_size,
                num_target_ids,
                dtype=model_directory.policy(precision),
            )
            self.model.build()
            self.weights = self.model.trainable_variables
            self.schedule = optimization.schedule(hparams)
            self.optimizer = optimization.adam(hparams)
            self.optimizer.build(self.weights)
            self.sums = [_sum_variable(w.shape) for w in self.weights]
            self.loss_sum = _sum_variable(())
            self.token_count = _sum_variable(())
        self.is_scaled = precision == "float16"
        self.loss_scale = _FIRST_LOSS_SCALE if self.is_scaled else 1.0
        self.updates_since_scaled = 0
        ids = tf.TensorSpec([None, None], tf.int32)
        signature = [ids, ids, tf.TensorSpec([2], tf.int64), tf.TensorSpec([])]
        add = tf.function(
            self._add_shard,
            input_signature=signature,
            jit_compile=xla or None,
            autograph=False,
        )
        self._run_add = self._on_replicas(
            lambda shard, scale: add(*shard, scale)
        )
        self._run_apply = self._on_replicas(self._apply)
        self._run_is_finite = self._on_replicas(self._is_finite)
        self._run_clear = self._on_replicas(self._clear)

    def _on_replicas(self, function):
        """Returns the function that runs `function` on every replica."""
        return tf.function(
            lambda *args: self.strategy.run(function, args=args),
            reduce_retracing=True,
            autograph=False,
        )

    def update(
        self, source_ids, target_ids, num_micro_batches=1, stop=lambda: False
    ):
        """Does one update; returns an Update, or None if it was stopped.

        Args:
            source_ids: int32 array [B, S], the batch of all replicas.
            target_ids: int32 array [B, T].
            num_micro_batches: int, how many parts each replica takes in turn.
            stop: a function that tells whether this process was asked to stop.
                Alone, it gives the update up between two micro-batches, which
                leaves no trace; one of several workers reports it in the
                Update, for all to stop after the same one.
        """
        is_added = False
        while not is_added:
            scale = self.loss_scale
            for n in range(num_micro_batches):
                if stop() and not self.has_other_workers:
                    self._run_clear()
                    return None
                self.add(source_ids, target_ids, n, num_micro_batches)
            is_added = not self.is_scaled or self._scale_fits()
        report = self._run_apply(tf.constant(scale), tf.constant(float(stop())))
        self.step += 1
        self.flops += training_cost.update_flops(
            self.hparams,
            self.model.num_target_ids,
            *source_ids.shape,
            target_ids.shape[1],
        )
        return Update(*(self._first_local(value) for value in report))

    def add(self, source_ids, target_ids, n=0, num_micro_batches=1):
        """Adds the n-th micro-batch of a batch to the sums of an update.

        Args: those of `update`.
        """
        if not self._is_traced:
            self._trace_for_all_shapes()
        replicas = self.strategy.num_replicas_in_sync
        num_shards = replicas * num_micro_batches

        def shard(context):
            index = n * replicas + context.replica_id_in_sync_group
            return (
                *(
                    _shard(ids, index, num_shards, self.num_parts)
                    for ids in (source_ids, target_ids)
                ),
                tf.constant([self._dropout_seed(), index], tf.int64),
            )

        shards = self.strategy.experimental_distribute_values_from_function(
            shard
        )
        self._run_add(shards, tf.constant(self.loss_scale))

    def _trace_for_all_shapes(self):
        """Makes one graph serve every batch, by two that are all padding.

        TensorFlow traces the first shape it sees for that shape alone, and
        optimizes that graph in ways that round differently: a resumed run,
        which sees another shape first, would drift from the one it resumes.
        """
        self._is_traced = True
        smallest = self.strategy.num_replicas_in_sync * self.num_parts
        for n in (1, 2):
            ids = np.zeros((n * smallest, 1 + n), np.int32)
            self.add(ids, ids)
        self._run_clear()

    def _dropout_seed(self):
        return (self.hparams.seed * 1_000_003 + self.step) % 2**31

    def _add_shard(self, source_ids, target_ids, seed, scale):
        """Adds a shard's loss and gradient to the sums of this replica."""
        P = self.num_parts  # None of which waits for another.
        parts = [
            self._loss_and_gradients(
                source_ids[n::P],
                target_ids[n::P],
                seed * [1, P] + [0, n],
                scale,
            )
            for n in range(P)
        ]
        sums = (self.loss_sum, self.token_count, *self.sums)
        for total, *values in zip(sums, *parts, strict=True):
            total.assign_add(tf.add_n(values))

    def _loss_and_gradients(self, source_ids, target_ids, seed, scale):
        """Returns the sum of the loss, the number of tokens, the gradients."""
        with (
            self._dropout_seeded_by(seed),
            tf.GradientTape() as tape,
        ):
            x_BTD = self.model.decode(
                (source_ids, shift_right(target_ids)), training=True
            )
            loss_sum, tokens = loss.projected_cross_entropy(
                x_BTD,
                self.model.embedding.first_rows(self.model.num_target_ids),
                target_ids,
                self.hparams.label_smoothing,
                scale,
            )
            scaled_loss = loss_sum * scale
        gradients = tape.gradient(scaled_loss, [w.value for w in self.weights])
        return loss_sum, tokens, *map(tf.convert_to_tensor, gradients)

    def _dropout_seeded_by(self, seed):
        """Makes the dropout masks a function of `seed`, int64 [2].

        Left alone, Keras draws the same masks on every replica, and a run that
        is resumed would have to restore where each layer's sequence stood.
        """
        # The model's variables that are not trained are all such sequences.
        sequences = self.model.non_trainable_variables
        room = len(sequences) * _SEEDS_PER_DROPOUT
        states = []
        for n, sequence in enumerate(sequences):
            place = seed[1] * room + n * _SEEDS_PER_DROPOUT
            state = tf.cast(tf.stack([seed[0], place]), sequence.dtype)
            states.append((sequence, state))
        return keras.StatelessScope(state_mapping=states)

    def _apply(self, scale, stop):
        """Updates the weights by the sums of all replicas and clears them."""
        context = tf.distribute.get_replica_context()
        loss_sum, tokens, stops = context.all_reduce(
            tf.distribute.ReduceOp.SUM,
            # Tensors of this replica: with other workers, neither a variable
            # nor an argument has the device that the reduction asks for.
            [tf.identity(v) for v in (self.loss_sum, self.token_count, stop)],
        )
        divisor = tf.maximum(tokens, 1.0) * scale
        # Keras' optimizers add the gradients of all replicas up.
        self.optimizer.apply(
            [total / divisor for total in self.sums], self.weights
        )
        self._clear()
        return loss_sum / tf.maximum(tokens, 1.0), tokens, stops

    def _clear(self):
        for total in (*self.sums, self.loss_sum, self.token_count):
            total.assign(tf.zeros_like(total))

    def _is_finite(self):
        """Returns whether the sums of all replicas are finite."""
        is_finite = tf.reduce_all(
            [tf.reduce_all(tf.math.is_finite(total)) for total in self.sums]
        )
        context = tf.distribute.get_replica_context()
        failures = context.all_reduce(
            tf.distribute.ReduceOp.SUM, tf.cast(~is_finite, tf.float32)
        )
        return tf.equal(failures, 0.0)

    def _scale_fits(self):
        """Returns whether float16 held the gradients; adapts the loss scale.

        If not, the sums are cleared, for the same batch to be tried again with
        half the scale.
        """
        if bool(self._first_local(self._run_is_finite())):
            self.updates_since_scaled += 1
            if self.updates_since_scaled == _UPDATES_UNTIL_DOUBLED:
                self.loss_scale *= 2
                self.updates_since_scaled = 0
            return True
        self._run_clear()
        self.loss_scale /= 2
        self.updates_since_scaled = 0
        if self.loss_scale < 2.0**-10:
            raise InputError(
                f"the gradients of step {self.step + 1} are not finite at any "
                "loss scale: train with --precision=bfloat16 or float32"
            )
        return False

    def take_over_from_chief(self):
        """Gives every worker the chief's weights, optimizer and step."""
        if not self.has_other_workers:
            return
        for variable in (*self.weights, *self.optimizer.variables):
            variable.assign(self.from_chief(variable.value))
        self.step = int(self.from_chief(self.step))
        self.flops = float(self.from_chief(np.float64(self.flops)))
        self.loss_scale = float(self.from_chief(self.loss_scale))
        self.updates_since_scaled = int(
            self.from_chief(self.updates_since_scaled)
        )

    def from_chief(self, value):
        """Returns the chief's value on every worker; all must ask together."""
        if not self.has_other_workers:
            return value
        value = tf.convert_to_tensor(value)

        def add_up():
            context = tf.distribute.get_replica_context()
            is_chiefs = tf.equal(context.replica_id_in_sync_group, 0)
            return context.all_reduce(
                tf.distribute.ReduceOp.SUM,
                tf.where(is_chiefs, value, tf.zeros_like(value)),
            )

        return self._first_local(self._on_replicas(add_up)()).numpy()

    def learning_rate(self, step):
        """Returns the float rate of the update that makes it `step` updates."""
        return float(self.schedule(step - 1))

    def weights_are_finite(self):
        """Returns whether no weight is NaN or infinite."""
        totals = [tf.reduce_sum(tf.abs(w.value)) for w in self.weights]
        return bool(tf.reduce_all(tf.math.is_finite(tf.stack(totals))))

    def _first_local(self, value):
        return self.strategy.experimental_local_results(value)[0]

    def gradients(self):
        """Returns the gradients of the loss over all that was added.

        Returns:
            list of float32 tensors, one for each of `weights`, in nats a token.
        """
        parts = self.strategy.run(
            lambda: [tf.identity(v) for v in (*self.sums, self.token_count)]
        )
        *sums, tokens = (
            self.strategy.reduce(tf.distribute.ReduceOp.SUM, part, axis=None)
            for part in parts
        )
        return [total / (tokens * self.loss_scale) for total in sums]

    def tensors(self):
        """Returns all that a checkpoint needs for training to go on from it."""
        variables = [*self.weights, *self.optimizer.variables]
        return model_directory.tensors_of(variables) | {
            "step": np.int64(self.step),
            # A big model's operations are more than an int64 holds.
            "training_flops": np.float64(self.flops),
            "loss_scale": np.float32(self.is_scaled and self.loss_scale),
            "updates_since_scaled": np.int64(self.updates_since_scaled),
        }

    def restore(self, tensors, description):
        """Goes back to what `tensors` returned."""
        variables = [*self.weights, *self.optimizer.variables]
        model_directory.assign(variables, tensors, description)
        self.step = int(tensors["step"])
        # Checkpoints of 0.1.0 can lack it.
        self.flops = float(tensors.get("training_flops", np.nan))
        if self.is_scaled and tensors["loss_scale"] > 0:
            self.loss_scale = float(tensors["loss_scale"])
            self.updates_since_scaled = int(tensors["updates_since_scaled"])


def best_num_parts(strategy, xla):
    """Returns how many parts of a micro-batch to compute at the same time.

    Two on one CPU. A GPU is busy with one, and XLA runs one operation after
    the other.
    """
    is_one_cpu = (
        not xla
        and isinstance(strategy, tf.distribute.OneDeviceStrategy)
        and not tf.config.list_physical_devices("GPU")
    )
    return 2 if is_one_cpu else 1


def _sum_variable(shape):
    """Returns a variable of zeros that each replica adds to for itself."""
    return tf.Variable(
        tf.zeros(shape),
        trainable=False,
        synchronization=tf.VariableSynchronization.ON_READ,
        aggregation=tf.VariableAggregation.SUM,
    )


def _shard(ids, index, num_shards, num_parts):
    """Returns every num_shards-th row from row `index` on.

    All shards have one size, which `num_parts` divides.
    """
    rows = -(-len(ids) // (num_shards * num_parts)) * num_parts
    part = ids[index::num_shards]
    return tf.constant(np.pad(part, ((0, rows - len(part)), (0, 0))))


def is_chief(strategy):
    """Returns whether this process is the one whose files remain."""
    if not isinstance(strategy, tf.distribute.MultiWorkerMirroredStrategy):
        return True
    resolver = strategy.cluster_resolver
    if resolver.task_type is None:
        return True
    has_chief = "chief" in resolver.cluster_spec().jobs
    first = ("chief" if has_chief else "worker", 0)
    return (resolver.task_type, resolver.task_id) == first


def make_strategy(name):
    """Returns the tf.distribute.Strategy called `name`.

    Args:
        name: "one_device", "mirrored" (all devices of this machine),
            "multi_worker" (the machines that TF_CONFIG names), or "auto": the
            last if TF_CONFIG is set, else "mirrored" if there are several GPUs.

    Raises:
        InputError: TF_CONFIG does not say which of which machines this is.
    """
    gpus = tf.config.list_physical_devices("GPU")
    for gpu in gpus:
        tf.config.experimental.set_memory_growth(gpu, True)
    if name == "auto":
        name = "one_device"
        if os.environ.get("TF_CONFIG"):
            name = "multi_worker"
        elif len(gpus) > 1:
            name = "mirrored"
    if name == "multi_worker":
        return _multi_worker_strategy(os.environ.get("TF_CONFIG", ""))
    kind = "GPU" if gpus else "CPU"
    if name == "mirrored":
        devices = [d.name for d in tf.config.list_logical_devices(kind)]
        return tf.distribute.MirroredStrategy(devices)
    return tf.distribute.OneDeviceStrategy(f"/device:{kind}:0")


def _multi_worker_strategy(tf_config):
    try:
        config = json.loads(tf_config)
        cluster, task = config["cluster"], config["task"]
        if int(task["index"]) not in range(len(cluster[task["type"]])):
            raise IndexError("the task is not one of the cluster")
    except (ValueError, LookupError, TypeError) as error:
        raise InputError(
            'TF_CONFIG must look like {"cluster": {"worker": ["host:port", '
            '...]}, "task": {"type": "worker", "index": 0}}; received '
            f"{tf_config!r} ({error})"
        ) from None
    try:
        return tf.distribute.MultiWorkerMirroredStrategy()
    except (ValueError, RuntimeError, tf.errors.OpError) as error:
        reason = str(getattr(error, "message", error)).splitlines()[0]
        raise InputError(
            f"cannot join the cluster of TF_CONFIG: received {tf_config!r} "
            f"({reason})"
        ) from None
