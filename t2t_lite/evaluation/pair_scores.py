"""How probable a model finds given translations, token by token."""

import itertools
import json
import math
from collections.abc import Callable, Iterable, Iterator
from typing import NamedTuple

from t2t_lite.evaluation.perplexity import TokenScorer, scoring_functions
from t2t_lite.model.transformer import Transformer
from t2t_lite.text import token_files
from t2t_lite.text.token_files import TokenPairs
from t2t_lite.text.vocabulary import FlatIds, Vocabulary

_PAIRS_AT_ONCE = 4096  # Sorted by length, so that they need little padding.


class PairScore(NamedTuple):
    """What a model thinks of one target, given its source."""

    tokens: list[str]  # of the target, "</s>" at its end
    # log p(token | those before it, source) in nats, as many; none where the
    # pair is too long for the model's learned positions.
    log_probabilities: list[float]

    @property
    def log_probability(self) -> float:
        """log p(target | source) in nats; NaN where the pair is too long."""
        if not self.log_probabilities:
            return math.nan
        return math.fsum(self.log_probabilities)

    def as_text(self) -> str:
        """Returns the log probability of the target.

        >>> PairScore(["nein", "</s>"], [-0.5, -0.25]).as_text()
        '-0.750000'
        """
        return f"{self.log_probability:.6f}"

    def as_json(self) -> str:
        """Returns the log probabilities of the target and of its tokens.

        >>> PairScore(["</s>"], [-0.25]).as_json()
        '{"log_probability": -0.25, "tokens": [["</s>", -0.25]]}'
        """
        is_scored = bool(self.log_probabilities)
        each = self.log_probabilities or [None] * len(self.tokens)
        return json.dumps(
            {
                "log_probability": self.log_probability if is_scored else None,
                "tokens": [*zip(self.tokens, each, strict=True)],
            },
            ensure_ascii=False,
        )


def score_pairs(
    model: Transformer,
    vocabulary: Vocabulary,
    pairs: Iterable[tuple[str, str]],
    encode_targets: Callable[[list[str]], FlatIds] | None = None,
) -> Iterator[PairScore]:
    """Yields the PairScore of each pair, in order, however many there are.

    Scores are those of a search, which never finds padding: its probability
    goes to the other ids. Lines are not split into sentences. The target's
    tokens are those that the vocabulary gives for its text; a search may have
    found the same text in other pieces.

    Args:
        model: Transformer.
        vocabulary: Vocabulary.
        pairs: (source, target) lines.
        encode_targets: from list of str to FlatIds, the task's; the target
            vocabulary's when not given.
    """
    functions = scoring_functions(model, as_searched=True)
    encode_targets = encode_targets or vocabulary.target.encode_flat
    pairs = iter(pairs)
    while block := [*itertools.islice(pairs, _PAIRS_AT_ONCE)]:
        ids = token_files.encode_pairs(block, vocabulary, encode_targets)
        scorer = TokenScorer(model, ids, functions=functions)
        yield from _scores_in_order(scorer, ids, vocabulary)


def _scores_in_order(
    scorer: TokenScorer, ids: TokenPairs, vocabulary: Vocabulary
) -> Iterator[PairScore]:
    lengths = ids.target_lengths.tolist()
    log_probabilities: list[list[float]] = [[] for _ in lengths]
    for indices, losses_RT in scorer.token_losses():
        for index, losses_T in zip(indices, losses_RT, strict=True):
            losses = losses_T[: lengths[index]]
            log_probabilities[index] = (0.0 - losses).tolist()
    for n, (start, end) in enumerate(itertools.pairwise(ids.target_offsets)):
        tokens = vocabulary.target.tokens(ids.target_ids[start:end])
        yield PairScore(tokens, log_probabilities[n])
