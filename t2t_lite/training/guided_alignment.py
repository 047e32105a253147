"""A head of the decoder that learns which words stand for which.

One head of one layer is taught alignments beside the translation, by a second
loss on its attention. Garg et al. 2019 found the last layer but one the best.
What it is to align is the token that it reads, not yet unknown as the one that
it predicts is (Chen et al. 2020).
"""

import contextlib
from contextlib import AbstractContextManager

from t2t_lite.decoding.alignment import Head
from t2t_lite.hparams import HParams
from t2t_lite.model.loss import alignment_loss
from t2t_lite.model.multi_head_attention import record_weights
from t2t_lite.model.transformer import Transformer
from t2t_lite.tensor import Tensor


def guided_head(hparams: HParams) -> Head:
    """Returns the head that learns, the first of the last layer but one."""
    return Head(max(0, hparams.decoder_layers - 2), 0, reads=True)


class GuidedAlignment:
    """The second loss of a model.

    Args:
        model: Transformer.
    """

    def __init__(self, model: Transformer):
        self._weight = model.hparams.guided_alignment
        self._head = guided_head(model.hparams)
        layer = model.decoder.layers[self._head.layer]
        self._attention = layer.memory_attention

    def recorded(self) -> AbstractContextManager[dict[str, Tensor]]:
        """Records the attention of a model that is called inside."""
        return record_weights() if self._weight else contextlib.nullcontext({})

    def loss(
        self, recorded: dict[str, Tensor], is_linked_BTS: Tensor
    ) -> Tensor:
        """Returns the summed loss, float32 [], times its weight.

        Args:
            recorded: what `recorded` gave.
            is_linked_BTS: that of `alignment_loss`.
        """
        weights_BTS = recorded[self._attention.path][:, self._head.head]
        # A token is read in the row behind the one that predicts it.
        total = alignment_loss(weights_BTS[:, 1:], is_linked_BTS[:, :-1])
        return self._weight * total
