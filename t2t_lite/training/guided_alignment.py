"""A head of the decoder that learns which words stand for which.

One head of one layer is taught alignments beside the translation, by a second
loss on its attention. Garg et al. 2019 found the last layer but one the best;
the paper's own heads learn what they attend to by themselves.
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
    return Head(max(0, hparams.decoder_layers - 2), 0)


class GuidedAlignment:
    """The second loss of a model.

    Args:
        model: Transformer.
    """

    def __init__(self, model: Transformer):
        self._weight = model.hparams.guided_alignment
        layer, self._head = guided_head(model.hparams)
        self._attention = model.decoder.layers[layer].memory_attention

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
        weights_BTS = recorded[self._attention.path][:, self._head]
        return self._weight * alignment_loss(weights_BTS, is_linked_BTS)
