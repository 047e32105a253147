"""What a served model computes: text to text in one graph."""

from collections.abc import Callable
from typing import Any, NamedTuple

import tensorflow as tf

from t2t_lite.decoding import piece_prefix, shapes
from t2t_lite.decoding.alternatives import AlternativesSearch
from t2t_lite.decoding.search import ids_translator, max_target_length
from t2t_lite.decoding.search_options import LINE_ONLY_OPTIONS, SearchOptions
from t2t_lite.decoding.steering import Steering
from t2t_lite.errors import require
from t2t_lite.hparams import HParams
from t2t_lite.model import loss
from t2t_lite.model.alignment_head import AlignmentHead
from t2t_lite.model.multi_head_attention import record_weights
from t2t_lite.model.transformer import Transformer, shift_right
from t2t_lite.serving import checks
from t2t_lite.text import sentences
from t2t_lite.text.sentences import Splitting
from t2t_lite.text.vocabulary import SPACE, Vocabulary
from t2t_lite.token_ids import EOS, PAD

NUM_ALTERNATIVES = 5  # Of each text, in the signature of that name.
_TEXT_B = tf.TensorSpec([None], tf.string)
_IDS_BL = tf.TensorSpec([None, None], tf.int32)


class ServingOptions(NamedTuple):
    """What is fixed when a model is exported."""

    search: SearchOptions
    max_length: int  # tokens of a source or, if split, of a sentence of it
    xla: bool = False  # whether XLA compiles the search
    attention_layer: int | None = None  # of the decoder, from 0; None: last
    attention_head: int | None = None  # from 0; None: the mean of all
    attention_reads: bool = False  # of the position that reads a token
    splitting: Splitting = Splitting()  # which texts are split

    def check(self, hparams: HParams) -> None:
        """Checks that a model of these hparams has such a layer and head.

        Raises:
            InputError: it does not, its sources are shorter, or an export takes
                no such option.
        """
        given = {n: getattr(self.search, n) for n in LINE_ONLY_OPTIONS}
        rule = (
            "keep, glossary, alignments and alternatives must not be set for "
            "an export, which always has the signatures translate_aligned and "
            "alternatives"
        )
        given = {name: value for name, value in given.items() if value}
        require(rule, not given, **given)
        checks.require_parts(
            hparams,
            self.max_length,
            attention_layer=self.attention_layer,
            attention_head=self.attention_head,
        )


class ServedModel:
    """The functions of a SavedModel, from text to text.

    Args:
        model: Transformer.
        vocabulary: Vocabulary.
        options: ServingOptions.
    """

    def __init__(
        self,
        model: Transformer,
        vocabulary: Vocabulary,
        options: ServingOptions,
    ):
        self._model, self._vocabulary = model, vocabulary
        self._options = options
        self.variables = [w.value for w in model.trainable_variables]
        search = options.search
        steering = Steering(search, vocabulary.target)
        self.translate_ids = self._ids_translator(
            search, constraint=steering.constraint
        )
        self._translate_ids_nbest = self._ids_translator(
            search,
            constraint=steering.constraint,
            min_finished=search.beam_width,
        )
        self._prefix_tokens = steering.prefix_tokens
        self._translate_ids_prefixed = self._ids_translator(
            search,
            constraint=steering.after_prefixes(),
            given=("prefixes_BK3",),
        )
        self._find_alternatives = AlternativesSearch(
            self._ids_translator,
            search.without_sampling(model.hparams),
            steering,
        )
        self._max_token_bytes = max(
            len(token.encode())
            for side in (vocabulary, vocabulary.target)
            for token in side.tokens(range(side.size))
        )
        # A text of more bytes has more tokens than the model takes.
        self._max_bytes = (options.max_length + 1) * self._max_token_bytes
        self._max_target_length = max_target_length(
            model.hparams, options.max_length, options.search
        )
        # Most signatures call these; the SavedModel has them only once.
        self._encode = tf.function(
            self._encode_in_graph, [_TEXT_B], autograph=False
        )
        self._decode = tf.function(
            vocabulary.target.decode_tensor, [_IDS_BL], autograph=False
        )

    def _ids_translator(
        self, search: SearchOptions, **arguments: Any
    ) -> Callable:
        return ids_translator(
            self._model,
            search,
            self._options.xla,
            max_length=self._options.max_length,
            hardware=shapes.ANYWHERE,
            **arguments,
        )

    def signatures(self) -> dict[str, Callable]:
        """Returns the tf.functions of the signatures by name."""
        text_B = [tf.TensorSpec([None], tf.string, name="inputs")]
        pair_B, prefixed_B = (
            [tf.TensorSpec([None], tf.string, name=name) for name in names]
            for names in (("sources", "targets"), ("inputs", "prefixes"))
        )
        return {
            name: tf.function(function, signature, autograph=False)
            for name, function, signature in (
                ("serving_default", self._translate, text_B),
                ("translate_nbest", self._translate_nbest, text_B),
                ("translate_aligned", self._translate_aligned, text_B),
                ("translate_prefix", self._translate_prefix, prefixed_B),
                ("alternatives", self._alternatives, prefixed_B),
                ("score", self._score, pair_B),
            )
        }

    def _translate(self, inputs):
        """Returns the best translation of each text of string [B].

        A sentence of more than `max_length` tokens is truncated.
        """
        parts = self._split(inputs)
        ids, is_truncated_P = self._encode(parts.flat_values)
        found = self.translate_ids(ids)
        text_P = self._decode(found.ids_BWT[:, 0])
        scores_P = parts.with_flat_values(found.scores_BW[:, 0])
        scores_B = tf.reduce_sum(scores_P, axis=1)
        text_B = sentences.join_tensor(
            text_P, parts.value_rowids(), parts.nrows()
        )
        return {
            "outputs": tf.where(tf.math.is_finite(scores_B), text_B, ""),
            "scores": scores_B,
            "truncated": _any_of(parts, is_truncated_P),
        }

    def _translate_nbest(self, inputs):
        """Returns the best translation of each text, and the runners-up.

        The search ends when the best is certain and W have been found. The
        others are those found by then; if fewer ended within the maximum
        length, the rest are missing: "" with a score of -inf. The n-th best of
        a text has the n-th best of each of its sentences.
        """
        parts = self._split(inputs)
        ids, is_truncated_P = self._encode(parts.flat_values)
        found = self._translate_ids_nbest(ids)
        W = self._options.search.beam_width
        ids_RT = tf.reshape(found.ids_BWT, [-1, tf.shape(found.ids_BWT)[2]])
        text_PW = self._decode(ids_RT)
        row_PW = parts.value_rowids()[:, None] * W + tf.range(W, dtype=tf.int64)
        B = parts.nrows()
        text_BW = sentences.join_tensor(
            text_PW, tf.reshape(row_PW, [-1]), B * W
        )
        has_ended_PW = tf.reduce_any(found.ids_BWT == EOS, axis=2)
        is_valid_PW = has_ended_PW | (tf.range(W) == 0)
        scores_PW = tf.where(is_valid_PW, found.scores_BW, -float("inf"))
        scores_BW = tf.reduce_sum(parts.with_flat_values(scores_PW), axis=1)
        has_text_B1 = parts.row_lengths()[:, None] > 0
        is_valid_BW = tf.math.is_finite(scores_BW) & (
            has_text_B1 | (tf.range(W) == 0)
        )
        return {
            "outputs": tf.where(is_valid_BW, tf.reshape(text_BW, [-1, W]), ""),
            "scores": tf.where(is_valid_BW, scores_BW, -float("inf")),
            "truncated": _any_of(parts, is_truncated_P),
        }

    def _translate_prefix(self, inputs, prefixes):
        """Returns the best translation of each text that begins with a prefix.

        Texts are not split into sentences. If there is no such translation, it
        is "" with a score of -inf.
        """
        ids, prefix_ids_BK, fits_B, is_truncated_B = self._encode_prefixed(
            inputs, prefixes
        )
        found = self._translate_ids_prefixed(
            ids, self._prefix_tokens.places(prefix_ids_BK)
        )
        scores_B = tf.where(fits_B, found.scores_BW[:, 0], -float("inf"))
        text_B = self._decode(found.ids_BWT[:, 0])
        return {
            "outputs": tf.where(tf.math.is_finite(scores_B), text_B, ""),
            "scores": scores_B,
            "truncated": is_truncated_B,
        }

    def _alternatives(self, inputs, prefixes):
        """Returns C translations of each text, by the next word of a prefix.

        They are the best ones with each of the likeliest words after the
        prefix. Texts are not split into sentences. If there are fewer, the
        rest are "" with a score of -inf.
        """
        ids, prefix_ids_BK, fits_B, is_truncated_B = self._encode_prefixed(
            inputs, prefixes
        )
        found = self._find_alternatives(ids, prefix_ids_BK, NUM_ALTERNATIVES)
        scores_BC = tf.where(fits_B[:, None], found.scores_BW, -float("inf"))
        ids_NT = tf.reshape(found.ids_BWT, [-1, tf.shape(found.ids_BWT)[2]])
        text_N = self._decode(ids_NT)
        text_BC = tf.reshape(text_N, tf.shape(scores_BC))
        return {
            "outputs": tf.where(tf.math.is_finite(scores_BC), text_BC, ""),
            "scores": scores_BC,
            "truncated": is_truncated_B,
        }

    def _encode_prefixed(self, inputs, prefixes):
        """Returns ids, prefix ids, which prefixes fit, and what is cut.

        Returns:
            ids, a ragged tensor; prefix_ids_BK, int32, padded with 0;
            fits_B, whether a translation may have more tokens than its prefix;
            is_truncated_B, whether its text was truncated.
        """
        tf.debugging.assert_equal(
            tf.shape(inputs),
            tf.shape(prefixes),
            'there must be one prefix for each input, "" for none',
        )
        ids, is_truncated_B = self._encode(inputs)
        # No more of a prefix than shows that it is too long.
        most = self._max_target_length
        prefix_ids = piece_prefix.encode(
            tf.strings.substr(prefixes, 0, (most + 1) * self._max_token_bytes),
            self._vocabulary.target,
        )
        room_B = tf.minimum(
            ids.row_lengths() + self._options.search.max_extra_length, most
        )
        # A blank text has only a blank translation.
        room_B = tf.where(ids.row_lengths() > 0, room_B, 1)
        # The mark of a space would come out as a space.
        has_mark_B = tf.strings.regex_full_match(prefixes, f"(?s).*{SPACE}.*")
        fits_B = (prefix_ids.row_lengths() < room_B) & ~has_mark_B
        return ids, prefix_ids[:, :most].to_tensor(), fits_B, is_truncated_B

    def _split(self, text_B):
        """Returns the parts of texts that are translated one by one."""
        options = self._options
        splitting = options.splitting.limited_to(options.max_length)
        lengths_B = None
        if splitting.whole_up_to:
            lengths_B = self._vocabulary.encode_tensor(text_B).row_lengths()
        return sentences.split_tensor(text_B, splitting, lengths_B)

    def _translate_aligned(self, inputs):
        """Returns tokens, and what each target token's position attended to.

        Texts are not split into sentences: attention is that of one pass.
        Dense and padded: source tokens [B, S] and target tokens [B, T] with "",
        attention [B, T, S] with 0.
        """
        ids, is_truncated_B = self._encode(inputs)
        target_ids_BT = self.translate_ids(ids).ids_BWT[:, 0]
        T = tf.reduce_max(tf.concat([[0], _lengths(target_ids_BT)], axis=0))
        source_ids_BS, target_ids_BT = ids.to_tensor(), target_ids_BT[:, :T]
        return {
            "source_tokens": self._vocabulary.tokens_tensor(source_ids_BS),
            "target_tokens": self._vocabulary.target.tokens_tensor(
                target_ids_BT
            ),
            "attention": self._attention(source_ids_BS, target_ids_BT),
            "truncated": is_truncated_B,
        }

    def _attention(self, source_ids_BS, target_ids_BT):
        """Returns float32 [B, T, S]: the weights of the layer and head."""
        B, S = tf.unstack(tf.shape(source_ids_BS))
        T = tf.shape(target_ids_BT)[1]

        def run(source_ids, target_ids):
            weights_BTS = self._attention_of_batch(source_ids, target_ids)
            weights_BTS = weights_BTS[:, :T, :S]
            missing = [T, S] - tf.shape(weights_BTS)[1:]
            missing = tf.pad(missing[:, None], [[1, 0], [1, 0]])
            return [tf.pad(weights_BTS, missing)]

        (weights_BTS,) = self._run_in_batches(
            run, source_ids_BS, target_ids_BT, default=tf.zeros([B, T, S])
        )
        return weights_BTS

    def _attention_of_batch(self, source_ids_BS, target_ids_BT):
        """Returns float32 [B, T, S], rows of padding 0."""
        layer = self._options.attention_layer
        head = AlignmentHead(
            -1 if layer is None else layer,
            self._options.attention_head,
            self._options.attention_reads,
        )
        with record_weights() as recorded:
            self._model((source_ids_BS, shift_right(target_ids_BT)))
        weights_BTS = head.token_weights(self._model, recorded, target_ids_BT)
        is_token_BT = tf.cast(target_ids_BT != PAD, tf.float32)
        return weights_BTS * is_token_BT[..., None]

    def _score(self, sources, targets):
        """Returns log p(target | source) in nats, and the target's tokens.

        The end of the sentence counts as a token. A pair that is too long for
        the model is not scored: its log probability is NaN. Nothing is split
        into sentences.
        """
        tf.debugging.assert_equal(
            tf.shape(sources),
            tf.shape(targets),
            "there must be one target for each source",
        )
        source_ids = self._vocabulary.encode_tensor(sources)
        target_ids = self._vocabulary.target.encode_tensor(targets)
        num_tokens_B = target_ids.row_lengths()
        fits_B = (source_ids.row_lengths() <= self._options.max_length) & (
            num_tokens_B <= self._max_target_length
        )
        source_ids_BS, target_ids_BT = (
            tf.where(
                fits_B[:, None],
                ids[:, : self._max_target_length].to_tensor(),
                PAD,
            )
            for ids in (source_ids, target_ids)
        )

        def run(source_ids, target_ids):
            logits_BTV = self._model((source_ids, shift_right(target_ids)))
            losses_BT, _ = loss.token_losses(logits_BTV, target_ids)
            return [-tf.reduce_sum(losses_BT, axis=1)]

        (log_probabilities_B,) = self._run_in_batches(
            run,
            source_ids_BS,
            target_ids_BT,
            default=tf.fill(tf.shape(sources), float("nan")),
        )
        return {
            "log_probabilities": log_probabilities_B,
            "num_tokens": tf.cast(num_tokens_B, tf.int32),
        }

    def _encode_in_graph(self, text_B):
        """Returns ids, none for a blank text, and which texts are truncated."""
        is_blank_B = tf.strings.regex_full_match(text_B, sentences.BLANK)
        is_cut_B = tf.strings.length(text_B) > self._max_bytes
        text_B = tf.strings.substr(text_B, 0, self._max_bytes)
        text_B = tf.where(is_blank_B, "", text_B)
        pieces = self._vocabulary.encode_tensor(text_B)[:, :-1]
        most = self._options.max_length - 1
        end = tf.ragged.boolean_mask(
            tf.fill([tf.size(text_B), 1], EOS), ~is_blank_B[:, None]
        )
        ids = tf.concat([pieces[:, :most], end], axis=1)
        is_truncated_B = (pieces.row_lengths() > most) | is_cut_B
        return ids, is_truncated_B & ~is_blank_B

    def _run_in_batches(self, run, source_ids_BS, target_ids_BT, *, default):
        """Returns (what `run` computes,); `default` for pairs of padding."""
        # Called for each part of a batch; the SavedModel has it only once.
        run = tf.function(run, [_IDS_BL, _IDS_BL], autograph=False)

        def run_rows(rows_R, num_rows, length):
            return run(
                shapes.take_rows(
                    source_ids_BS, rows_R, num_rows=num_rows, length=length
                ),
                shapes.take_rows(
                    target_ids_BT, rows_R, num_rows=num_rows, length=length
                ),
            )

        lengths_B = tf.maximum(_lengths(source_ids_BS), _lengths(target_ids_BT))
        return shapes.run_in_batches(
            run_rows,
            lengths_B,
            (default,),
            max_length=self._max_target_length,
            fixed_shapes=False,
        )


def _any_of(parts, is_true_P):
    """Returns bool [B], whether it is true of any part of each text."""
    return tf.reduce_any(parts.with_flat_values(is_true_P), axis=1)


def _lengths(ids_BL):
    return tf.math.count_nonzero(ids_BL, axis=1, dtype=tf.int32)
