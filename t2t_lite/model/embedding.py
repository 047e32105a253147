"""Tokens and positions as vectors, and vectors as logits over tokens."""

import keras
from keras import ops

from t2t_lite.model import positions, rows
from t2t_lite.token_ids import PAD


@keras.saving.register_keras_serializable("t2t_lite")
class TiedEmbedding(keras.layers.Layer):
    """One matrix for source tokens, target tokens and the pre-softmax.

    Drawn from a normal distribution of deviation d_model^-0.5, so that both
    the scaled embeddings and the logits start with a deviation near 1.

    Args:
        vocabulary_size: int, V.
        d_model: int, D.

    Source: section 3.4.
    """

    def __init__(self, vocabulary_size, d_model, **kwargs):
        super().__init__(**kwargs)
        self.supports_masking = True
        self.vocabulary_size = vocabulary_size
        self.d_model = d_model

    def build(self, ids_shape=None):
        self.embedding = self.add_weight(
            name="embedding",
            shape=(self.vocabulary_size, self.d_model),
            initializer=keras.initializers.RandomNormal(
                stddev=self.d_model**-0.5
            ),
        )

    def call(self, ids):
        """Returns [..., D]: the vectors of ids [...] times sqrt(d_model)."""
        return ops.take(self.embedding, ids, axis=0) * self.d_model**0.5

    def compute_mask(self, ids, previous_mask=None):
        """Returns bool [...]: which ids are tokens, for Keras' layers."""
        return ops.not_equal(ids, PAD)

    def logits(self, x, num_ids=None):
        """Returns float32 logits [..., V] for vectors x [..., D].

        Args:
            x: float [..., D].
            num_ids: int, of how many ids, from 0 on; None for all.
        """
        return self.project(x, self.projection(num_ids))

    def projection(self, num_ids=None):
        """Returns what `project` multiplies by, [D, V] in the layer's dtype.

        Args:
            num_ids: int; None for all.
        """
        # Keras casts variables within `call` alone.
        embedding = ops.cast(self.first_rows(num_ids), self.compute_dtype)
        return ops.transpose(embedding)

    def project(self, x, projection_DV):
        """Returns float32 logits [..., V] for vectors x [..., D]."""
        x_ND = ops.cast(rows.flatten(x), self.compute_dtype)
        logits_NV = ops.cast(ops.matmul(x_ND, projection_DV), "float32")
        return rows.restore(logits_NV, x)

    def first_rows(self, num_ids=None):
        """Returns float32 [V, D]: the vectors of the ids 0 to num_ids - 1.

        Args:
            num_ids: int; None for all.
        """
        if num_ids in (None, self.vocabulary_size):
            return self.embedding  # A slice would be a copy, forth and back.
        return self.embedding[:num_ids]

    def compute_output_shape(self, ids_shape):
        return (*ids_shape, self.d_model)

    def get_config(self):
        return super().get_config() | {
            "vocabulary_size": self.vocabulary_size,
            "d_model": self.d_model,
        }


@keras.saving.register_keras_serializable("t2t_lite")
class PositionEmbedding(keras.layers.Layer):
    """Adds to each vector the encoding of its position.

    Args:
        d_model: even int, D.
        learned: None for sines and cosines of any length (section 3.5), or the
            int number of rows of a learned table (Table 3, row E).
    """

    def __init__(self, d_model, learned=None, **kwargs):
        super().__init__(**kwargs)
        self.supports_masking = True
        self.d_model = d_model
        self.learned = learned
        self.table = None

    def build(self, x_shape=None):
        if self.learned is not None:
            self.table = self.add_weight(
                name="table",
                shape=(self.learned, self.d_model),
                initializer=keras.initializers.RandomNormal(
                    stddev=self.d_model**-0.5
                ),
            )

    def call(self, x, start=0):
        """Returns x plus the encodings of positions start, start + 1, ...

        Args:
            x: float [B, L, D].
            start: int or int scalar tensor, the position of x[:, 0].

        Raises:
            ValueError: L is known and longer than the learned table.
        """
        length = ops.shape(x)[1]
        if self.learned is None:
            position_L = start + ops.arange(length)
            encodings_LD = positions.sinusoids(position_L, self.d_model)
        else:
            self._check(length)
            ends = (length, self.d_model)
            table = ops.convert_to_tensor(self.table)  # JAX slices no variable.
            encodings_LD = ops.slice(table, (start, 0), ends)
        return x + ops.cast(encodings_LD, x.dtype)

    def _check(self, length):
        if isinstance(length, int) and length > self.learned:
            raise ValueError(
                f"learned positions end at {self.learned}; received a "
                f"sequence of length {length}"
            )

    def compute_output_shape(self, x_shape):
        return x_shape

    def get_config(self):
        return super().get_config() | {
            "d_model": self.d_model,
            "learned": self.learned,
        }
