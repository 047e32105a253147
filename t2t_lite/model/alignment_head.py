"""Which source tokens a target token stands for, as a decoder head sees it."""

from collections.abc import Mapping
from typing import NamedTuple

from keras import ops

from t2t_lite.model.transformer import Transformer
from t2t_lite.tensor import Tensor
from t2t_lite.token_ids import PAD


class AlignmentHead(NamedTuple):
    """One head of a decoder layer's attention to the source."""

    layer: int
    head: int | None = None  # None for the mean over all
    # Whether to ask it where a token is read, not where it is predicted: when
    # reading, it knows the token (Chen et al. 2020).
    reads: bool = False

    def token_weights(
        self,
        model: Transformer,
        recorded: Mapping[str, Tensor],
        target_ids_BT: Tensor,
    ) -> Tensor:
        """Returns its attention for each target token, float32 [B, T, S].

        The last token, EOS, is never read: its weights are those at the
        position that predicts it.

        Args:
            model: Transformer.
            recorded: what `record_weights` recorded in a call of the model with
                `shift_right(target_ids_BT)`.
            target_ids_BT: int32.
        """
        layer = model.decoder.layers[self.layer]
        weights_BHTS = recorded[layer.memory_attention.path]
        if self.head is None:
            predicts_BTS = ops.mean(weights_BHTS, axis=1)
        else:
            predicts_BTS = weights_BHTS[:, self.head]
        if not self.reads:
            return predicts_BTS
        # A token is read in the row after the one that predicts it.
        reads_BTS = ops.concatenate(
            [predicts_BTS[:, 1:], predicts_BTS[:, -1:]], axis=1
        )
        end_B1 = ops.full_like(target_ids_BT[:, :1], PAD)
        next_BT = ops.concatenate([target_ids_BT[:, 1:], end_B1], axis=1)
        is_read_BT1 = ops.expand_dims(next_BT != PAD, axis=-1)
        return ops.where(is_read_BT1, reads_BTS, predicts_BTS)
