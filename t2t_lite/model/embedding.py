"""Tokens and positions as vectors, and vectors as logits over tokens."""

from typing import Any

import keras
import numpy as np
from keras import ops

from t2t_lite.errors import (
    require,
    require_bool,
    require_int,
    require_positive,
)
from t2t_lite.model import rows
from t2t_lite.model.ids import require_ids_below
from t2t_lite.model.products import Matrix, multiply
from t2t_lite.tensor import Shape, Tensor
from t2t_lite.token_ids import PAD


@keras.saving.register_keras_serializable("t2t_lite")
class TiedEmbedding(keras.layers.Layer):
    """One matrix for source tokens, target tokens and the pre-softmax.

    It is drawn from a normal distribution with standard deviation d_model^-0.5,
    so both the scaled embeddings and the logits start with one near 1.

    Args:
        vocabulary_size: V.
        d_model: D.
        scale: what the vectors of tokens are multiplied by; sqrt(d_model) when
            not given.
        has_logit_bias: whether each logit has a bias; the paper's has none.

    Source: section 3.4.
    """

    def __init__(
        self,
        vocabulary_size: int,
        d_model: int,
        scale: float | None = None,
        has_logit_bias: bool = False,
        **kwargs: Any,
    ) -> None:
        require_int(1, vocabulary_size=vocabulary_size, d_model=d_model)
        require_bool(has_logit_bias=has_logit_bias)
        if scale is not None:
            require_positive(scale=scale)
        super().__init__(**kwargs)
        self.supports_masking = True
        self.vocabulary_size = vocabulary_size
        self.d_model = d_model
        self.scale = d_model**0.5 if scale is None else scale
        self.has_logit_bias = has_logit_bias
        self.logit_bias = None

    def build(self, ids_shape: Shape | None = None) -> None:
        self.embedding = self.add_weight(
            name="embedding",
            shape=(self.vocabulary_size, self.d_model),
            initializer=keras.initializers.RandomNormal(
                stddev=self.d_model**-0.5
            ),
        )
        if self.has_logit_bias:
            self.logit_bias = self.add_weight(
                name="logit_bias",
                shape=(self.vocabulary_size,),
                initializer="zeros",
            )

    def call(self, ids: Tensor) -> Tensor:
        """Returns [..., D]: the vectors of ids [...] times the scale.

        Raises:
            InputError: ids are not integers; or, outside of graphs, some are
                not below vocabulary_size. In a graph, a negative one is taken
                to count from the end.
        """
        require_ids_below(self.vocabulary_size, ids=ids)
        return ops.take(self.embedding, ids, axis=0) * self.scale

    def compute_mask(
        self, ids: Tensor, previous_mask: Tensor | None = None
    ) -> Tensor:
        """Returns bool [...]: which ids are tokens, for Keras' layers."""
        return ops.not_equal(ids, PAD)

    def logits(self, x: Tensor, num_ids: int | None = None) -> Tensor:
        """Returns float32 logits [..., V] for vectors x [..., D].

        Args:
            x: float [..., D].
            num_ids: V, how many ids, from 0 on; None for all.
        """
        return self.project(x, self.projection(num_ids))

    def projection(self, num_ids: int | None = None) -> Tensor:
        """Returns the matrix of `project`, [D, V] in the layer's dtype.

        Args:
            num_ids: V; None for all.
        """
        # Keras casts variables only within `call`.
        embedding = ops.cast(self.first_rows(num_ids), self.compute_dtype)
        return ops.transpose(embedding)

    def project(self, x: Tensor, projection: Matrix) -> Tensor:
        """Returns float32 logits [..., V] for vectors x [..., D].

        Args:
            x: float [..., D].
            projection: what `projection` returned, maybe as an Int8Matrix.
        """
        logits_NV = multiply(rows.flatten(x), projection, self.compute_dtype)
        logits_NV = ops.cast(logits_NV, "float32")
        if self.logit_bias is not None:
            bias_V = self.logit_bias[: logits_NV.shape[-1]]
            logits_NV = logits_NV + ops.cast(bias_V, "float32")
        return rows.restore(logits_NV, like=x)

    def factors(
        self, x: Tensor, num_ids: int | None = None
    ) -> tuple[Tensor, Tensor]:
        """Returns vectors and a matrix whose product is the logits.

        They are x and the matrix as stored; if logits have a bias, it is one
        more column of the matrix, and x has ones there. So in a product of
        lower precision, the bias is rounded like the matrix; in `project`, it
        is not.

        Args:
            x: float [..., D].
            num_ids: V; None for all.

        Returns:
            (float [..., J], float [V, J]), J being D or D + 1.
        """
        matrix_VD = self.first_rows(num_ids)
        if self.logit_bias is None:
            return x, matrix_VD
        bias_V1 = self.logit_bias[: matrix_VD.shape[0], None]
        x = ops.concatenate([x, ops.ones_like(x[..., :1])], -1)
        return x, ops.concatenate([matrix_VD, bias_V1], 1)

    def first_rows(self, num_ids: int | None = None) -> Tensor:
        """Returns [V, D]: the vectors of the ids 0 to num_ids - 1, as stored.

        Args:
            num_ids: V; None for all.
        """
        if num_ids in (None, self.vocabulary_size):
            return self.embedding  # A slice copies, and so does its gradient.
        require(
            f"num_ids must be from 1 to {self.vocabulary_size}",
            1 <= num_ids <= self.vocabulary_size,
            num_ids=num_ids,
        )
        return self.embedding[:num_ids]

    def compute_output_shape(self, ids_shape: Shape) -> Shape:
        return (*ids_shape, self.d_model)

    def get_config(self) -> dict[str, Any]:
        return super().get_config() | {
            "vocabulary_size": self.vocabulary_size,
            "d_model": self.d_model,
            "scale": self.scale,
            "has_logit_bias": self.has_logit_bias,
        }


@keras.saving.register_keras_serializable("t2t_lite")
class PositionEmbedding(keras.layers.Layer):
    """Adds to each vector the encoding of its position.

    Args:
        d_model: D, even.
        learned: None for sines and cosines of any length (section 3.5), or the
            number of rows of a learned table (Table 3, row E).
        marian: that of `sinusoids`.
    """

    def __init__(
        self,
        d_model: int,
        learned: int | None = None,
        marian: bool = False,
        **kwargs: Any,
    ) -> None:
        require_int(1, d_model=d_model)
        require_bool(marian=marian)
        if learned is None:
            rule = "d_model must be even, for its sines and cosines"
            require(rule, d_model % 2 == 0, d_model=d_model)
        else:
            require_int(1, learned=learned)
        super().__init__(**kwargs)
        self.supports_masking = True
        self.d_model = d_model
        self.learned = learned
        self.marian = marian
        self.table = None

    def build(self, x_shape: Shape | None = None) -> None:
        if self.learned is not None:
            self.table = self.add_weight(
                name="table",
                shape=(self.learned, self.d_model),
                initializer=keras.initializers.RandomNormal(
                    stddev=self.d_model**-0.5
                ),
            )

    def call(self, x: Tensor, start: int | Tensor = 0) -> Tensor:
        """Returns x plus the encodings of positions start, start + 1, ...

        Args:
            x: float [B, L, D].
            start: int or int scalar tensor, the position of x[:, 0].

        Raises:
            ValueError: L is known and longer than the learned table.
        """
        rows.require_floats(x=x)
        rule = f"x must be [B, L, {self.d_model}]"
        fits = len(x.shape) == 3 and x.shape[-1] in (None, self.d_model)
        require(rule, fits, shape=list(x.shape))
        length = ops.shape(x)[1]
        if self.learned is None:
            position_L = start + ops.arange(length, dtype="int32")
            encodings_LD = sinusoids(position_L, self.d_model, self.marian)
        else:
            self._check(length)
            ends = (length, self.d_model)
            table = ops.convert_to_tensor(self.table)  # For JAX to slice it.
            encodings_LD = ops.slice(table, (start, 0), ends)
        return x + ops.cast(encodings_LD, x.dtype)

    def _check(self, length: int | Tensor) -> None:
        if isinstance(length, int) and length > self.learned:
            raise ValueError(
                f"learned positions end at {self.learned}; received a "
                f"sequence of length {length}"
            )

    def compute_output_shape(self, x_shape: Shape) -> Shape:
        return x_shape

    def get_config(self) -> dict[str, Any]:
        return super().get_config() | {
            "d_model": self.d_model,
            "learned": self.learned,
            "marian": self.marian,
        }


def sinusoids(position_L: Tensor, d_model: int, marian: bool = False) -> Tensor:
    """Returns the encodings of positions, PE_LD.

    PE(pos, 2i) = sin(pos / 10000^(2i / d_model)), PE(pos, 2i + 1) = cos of the
    same angle, so sines and cosines alternate along the last axis.

    >>> np.round(sinusoids([0, 1], 4), 2).tolist()[0]
    [0.0, 1.0, 0.0, 1.0]

    Args:
        position_L: number [L], positions counted from 0.
        d_model: D, even.
        marian: whether the exponent is 2i / (d_model - 2), so that the longest
            wavelength is 10000 times the shortest, as in Marian and in
            tensor2tensor.

    Returns:
        float32 [L, D].

    Source: section 3.5.
    """
    two_i = np.arange(0, d_model, 2)
    last = max(d_model - 2, 1) if marian else d_model
    frequency = np.float32(10000.0 ** (-two_i / last))
    angle = ops.cast(position_L, "float32")[:, None] * frequency
    pairs = ops.stack([ops.sin(angle), ops.cos(angle)], axis=-1)
    return ops.reshape(pairs, (-1, d_model))
