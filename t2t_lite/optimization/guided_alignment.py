"""A head of the decoder that learns which words correspond.

One head of one layer learns alignments along with the translation, by a second
loss on its attention. Garg et al. 2019 found the second to last layer the best.
The token that it aligns is the one that it reads, which it knows, rather than
the one that it predicts, which it does not know yet (Chen et al. 2020).
"""

from collections.abc import Mapping

import tensorflow as tf

from t2t_lite.hparams import HParams
from t2t_lite.model.alignment_head import AlignmentHead
from t2t_lite.model.loss import alignment_loss
from t2t_lite.model.transformer import Transformer


def guided_head(hparams: HParams) -> AlignmentHead:
    """Returns the head that learns, the first of the second to last layer."""
    return AlignmentHead(max(0, hparams.decoder_layers - 2), 0, reads=True)


def guided_loss(
    model: Transformer,
    recorded: Mapping[str, tf.Tensor],
    target_ids_BT: tf.Tensor,
    is_linked_BTS: tf.Tensor,
) -> tf.Tensor:
    """Returns the second loss, summed, times its weight: float32 [].

    Args:
        model: Transformer.
        recorded: that of `AlignmentHead.token_weights`.
        target_ids_BT: int32.
        is_linked_BTS: that of `alignment_loss`.
    """
    head = guided_head(model.hparams)
    weights_BTS = head.token_weights(model, recorded, target_ids_BT)
    total = alignment_loss(weights_BTS, is_linked_BTS)
    return model.hparams.guided_alignment * total
