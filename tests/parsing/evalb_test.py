"""Labeled bracketing scores equal EVALB's and those counted by hand.

Trees are written here without the outermost TOP bracket, which `tree_of` adds.
"""

import random

import pytest
from random_trees import LABELS, TAGS, random_leaves, random_tree

from t2t_lite.errors import InputError
from t2t_lite.parsing import evalb, trees
from t2t_lite.parsing.evalb import Sentence
from t2t_lite.parsing.trees import Tree


def tree_of(text):
    (tree,) = trees.read(f"(TOP {text})")
    return tree


def compare(gold, predicted):
    return evalb.compare(tree_of(gold), tree_of(predicted))


def brackets(sentence):
    return sentence.matched, sentence.gold, sentence.predicted


def counts(sentence):
    return (
        *brackets(sentence),
        sentence.crossing,
        sentence.words,
        sentence.correct_tags,
    )


def valid(length, constituents, words, correct_tags, crossing=0):
    """Returns a Sentence that was compared.

    Args:
        length: int.
        constituents: what `brackets` returns.
        words: int.
        correct_tags: int.
        crossing: int.
    """
    matched, gold, predicted = constituents
    return Sentence(
        "valid",
        length,
        all_gold=gold,
        matched=matched,
        gold=gold,
        predicted=predicted,
        crossing=crossing,
        words=words,
        correct_tags=correct_tags,
    )


def percents(*ratios):
    return [round(100 * ratio, 2) for ratio in ratios]


# The cases of EVALB's own sample on which COLLINS.prm and sample.prm agree,
# with other labels; the figures are those of its sample.rsl.

GOLD = "(S (NP (PRP it)) (VP (VBZ is) (NP (DT a) (NN dog))))"
EVALB_SAMPLE = {
    GOLD: "100 100 4 4 4 0 4 4",
    "(S (NP (PRP it)) (VP (VBZ is) (QP (DT a) (NN dog))))": (
        "75 75 3 4 4 0 4 4"
    ),
    "(S (NP (PRP it)) (VP (VBZ is) (NP (DT a) (JJ dog))))": (
        "100 100 4 4 4 0 4 3"
    ),
    "(S (QP (PRP it)) (VP (VBZ is) (NP (DT a) (JJ dog))))": (
        "75 75 3 4 4 0 4 3"
    ),
    "(S (NP (PRP it)) (VP (VBZ is) (DT a) (NP (NN dog))))": (
        "75 75 3 4 4 0 4 4"
    ),
    "(S (NP (PRP it) (VBZ is)) (NP (DT a) (NN dog)))": ("50 66.67 2 4 3 1 4 4"),
    "(S (PRP it) (VBZ is) (DT a) (NN dog))": "25 100 1 4 1 0 4 4",
    "(PRP it) (VBZ is) (DT a) (NN dog)": "0 0 0 4 0 0 4 4",
    "(S (NP (PRP it)) (VP (VBZ is) (NP (NP (DT a) (NN dog)))))": (
        "100 80 4 4 5 0 4 4"
    ),
    f"(S (NP (PRP it)) (VP (VBZ is) {5 * '(NP '}(DT a) (NN dog{8 * ')'}": (
        "100 50 4 4 8 0 4 4"
    ),
}


@pytest.mark.parametrize("predicted", EVALB_SAMPLE)
def test_the_sentences_of_evalbs_sample_have_its_figures(predicted):
    sentence = compare(GOLD, predicted)
    assert sentence.status == "valid"
    assert sentence.length == 4
    assert [
        *percents(sentence.recall, sentence.precision),
        *counts(sentence),
    ] == [float(figure) for figure in EVALB_SAMPLE[predicted].split()]


@pytest.mark.parametrize(
    "predicted",
    [
        "(S (NP (PRP it)) (VP (VBD was) (NP (DT a) (NN dog))))",
        "(S (NP (PRP it)) (VP (VBZ is) (RB not) (NP (DT a) (NN dog))))",
        "(S (NP (PRP It)) (VP (VBZ is) (NP (DT a) (NN dog))))",
        "(S (NP (PRP it)) (VP (VBZ is) (NP (DT a) (: dog))))",
    ],
    ids=["other_word", "more_words", "other_case", "a_tag_that_hides_a_word"],
)
def test_other_words_are_an_error(predicted):
    assert compare(GOLD, predicted) == Sentence("error", 4, all_gold=4)


@pytest.mark.parametrize("predicted", [None, tree_of("(S (. it))")])
def test_a_parse_without_words_is_skipped(predicted):
    sentence = evalb.compare(tree_of(GOLD), predicted)
    assert sentence == Sentence("skip", 4, all_gold=4)
    assert percents(sentence.recall, sentence.precision) == [0, 0]
    assert not sentence.is_complete_match


def test_a_blank_line_among_the_gold_trees_is_skipped():
    assert evalb.compare(None, None).status == "skip"
    gold = trees.read_one("(TOP (X (N a)))")
    scores = evalb.report([gold, None], [gold, None]).all
    assert (scores.sentences, scores.skips, scores.f1_of_all) == (2, 1, 1.0)


def test_a_sentence_of_punctuation_alone_is_skipped():
    assert compare("(X (: --))", "(X (: --))").status == "skip"


# COLLINS.prm, rule by rule.


@pytest.mark.parametrize("tag", [",", ":", "``", "''", "."])
def test_punctuation_is_taken_out_before_spans_are_compared(tag):
    """Both trees have S 0-3 and VP 1-3, although one VP holds the mark."""
    gold = f"(S (NN a) (VP (VB b) (NN c)) ({tag} !))"
    predicted = f"(S (NN a) (VP (VB b) (NN c) ({tag} !)))"
    sentence = compare(gold, predicted)
    assert brackets(sentence) == (2, 2, 2)
    assert (sentence.words, sentence.correct_tags) == (3, 3)
    assert sentence.length == 4


@pytest.mark.parametrize("tag", ["-LRB-", "HYPH", "$", "#", "?", "!", "SYM"])
def test_other_tags_are_words(tag):
    gold = f"(S (NN a) (VP (VB b) (NN c)) ({tag} !))"
    predicted = f"(S (NN a) (VP (VB b) (NN c) ({tag} !)))"
    sentence = compare(gold, predicted)
    assert brackets(sentence) == (1, 2, 2)
    assert sentence.words == 4


def test_one_deleted_tag_for_another_is_no_error():
    sentence = compare("(S (NN a) (: -))", "(S (NN a) (, -))")
    assert sentence == valid(2, (1, 1, 1), words=1, correct_tags=1)


def test_a_constituent_without_words_that_count_is_none():
    sentence = compare(
        "(S (NN a) (PRN (: -)) (NP (SBAR (-NONE- *))))", "(S (NN a) (: -))"
    )
    assert brackets(sentence) == (1, 1, 1)
    assert sentence.length == 2  # Counts the dash, but not the trace.


def test_top_is_no_constituent_but_root_and_s1_are():
    root = tree_of("(NN a)")
    assert brackets(evalb.compare(root, root)) == (0, 0, 0)
    assert brackets(compare("(TOP (NP (NN a)))", "(NP (NN a))")) == (1, 1, 1)
    assert brackets(compare("(ROOT (S1 (NN a)))", "(NN a)")) == (0, 2, 0)


def test_a_tag_is_no_constituent():
    sentence = compare("(S (NN a) (NP (NN b)))", "(S (JJ a) (NP (NN b)))")
    assert brackets(sentence) == (2, 2, 2)
    assert (sentence.correct_tags, sentence.words) == (1, 2)


@pytest.mark.parametrize("swap", [False, True])
def test_prt_is_advp(swap):
    pair = ["(S (PRT (RP up)) (NN a))", "(S (ADVP (RP up)) (NN a))"]
    assert brackets(compare(*reversed(pair) if swap else pair)) == (2, 2, 2)


def test_labels_end_before_function_tags_and_indices():
    sentence = compare(
        "(S (NP-SBJ-1 (NN a)) (VP=2 (VB b)))", "(S (NP (NN a)) (VP (VB b)))"
    )
    assert brackets(sentence) == (3, 3, 3)


def test_tags_are_compared_as_they_are():
    sentence = compare("(S (NN-X a) (NN b))", "(S (NN a) (NN b))")
    assert sentence.correct_tags == 1


@pytest.mark.parametrize(
    ("num_gold", "num_predicted", "matched"), [(1, 3, 1), (3, 1, 1), (3, 2, 2)]
)
def test_equal_constituents_count_as_often_as_in_both(
    num_gold, num_predicted, matched
):
    def nested(number):
        return "(NP " * number + "(NN a)" + ")" * number

    sentence = compare(nested(num_gold), nested(num_predicted))
    assert brackets(sentence) == (matched, num_gold, num_predicted)


def test_predicted_constituents_that_cross_are_counted_once_each():
    """NP 1-4 crosses A 0-2 and B 3-5; NP 1-2 and S 0-5 cross nothing."""
    sentence = compare(
        "(S (A (X a) (X b)) (X c) (B (X d) (X e)))",
        "(S (X a) (NP (NP (X b)) (X c) (X d)) (X e))",
    )
    assert sentence.crossing == 1
    assert not sentence.is_complete_match


def test_trees_of_several_top_constituents_compare():
    found = compare("(S (NN a)) (S (NN b))", "(S (NN a)) (NN b)")
    assert brackets(found) == (1, 2, 1)


# Sums.

SENTENCES = [
    valid(40, (4, 4, 4), words=10, correct_tags=10),
    valid(41, (2, 6, 4), words=30, correct_tags=20, crossing=1),
    Sentence("skip", 3, 2),
    Sentence("error", 50, 8),
]


def test_the_scores_of_a_corpus_are_ratios_of_sums():
    scores = evalb.sum_up(SENTENCES)
    assert (scores.sentences, scores.errors, scores.skips) == (4, 1, 1)
    assert scores.valid == 2
    assert scores.recall == 6 / 10
    assert scores.precision == 6 / 8
    assert scores.f1 == pytest.approx(2 * 0.6 * 0.75 / (0.6 + 0.75))
    assert scores.f1_of_all == 2 * 6 / (20 + 8)
    assert scores.complete_match == 1 / 2
    assert scores.no_crossing == 1 / 2
    assert scores.average_crossing == 1 / 2
    assert scores.tagging_accuracy == 30 / 40


def test_no_sentences_have_scores_of_zero():
    scores = evalb.sum_up([])
    assert scores.f1 == scores.recall == scores.complete_match == 0
    assert scores.f1_of_all == scores.tagging_accuracy == 0


def words_and_dots(num_words):
    return "(S (NN a)" + " (NN a)" * (num_words - 1) + " (. .))"


def test_sentences_of_up_to_40_words_count_punctuation_as_words():
    gold = [tree_of(words_and_dots(n)) for n in (39, 40)]
    report = evalb.report(gold, gold)
    assert [s.length for s in report.sentences] == [40, 41]
    assert report.all.sentences == 2
    assert report.short.sentences == 1
    assert report.short.words == 39


def test_a_report_needs_as_many_parses_as_gold_trees():
    with pytest.raises(InputError, match="received 1 gold trees and 2 parses"):
        evalb.report([tree_of(GOLD)], [None, None])


def test_a_report_is_text():
    gold = [tree_of(GOLD)] * 4
    flat = tree_of("(S (PRP it) (VBZ is) (DT a) (NN dog))")
    other = tree_of("(S (PRP it))")
    report = evalb.report(gold, [gold[0], flat, None, other])
    assert evalb.as_text(report).splitlines()[:5] == [
        "all sentences: 4",
        "  labeled F1 76.92 (recall 62.50, precision 100.00: 5 matched of 8 "
        "gold and 5 predicted)",
        "  left out, as by EVALB: 1 errors (different words), 1 skips (no "
        "parse); F1 47.62 if these count as parses without brackets",
        "  complete match 50.00, no crossing 100.00, average crossing 0.00",
        "  tagging accuracy 100.00 of 8 words",
    ]
    assert evalb.as_text(report).splitlines()[5] == (
        "sentences of up to 40 words: 4"
    )
    whole = evalb.report(gold[:1], gold[:1])
    assert "left out" not in evalb.as_text(whole)


def test_a_sentence_keeps_its_counts():
    gold, wrong = tree_of(GOLD), "(S (PRP it) (VBZ is) (DT a) (NN dog))"
    valid = evalb.compare(gold, tree_of(wrong))
    skip = evalb.compare(gold, None)
    assert (valid.status, valid.length, valid.recall) == ("valid", 4, 1 / 4)
    assert (valid.precision, valid.words, valid.correct_tags) == (1, 4, 4)
    assert (skip.status, skip.length, skip.all_gold) == ("skip", 4, 4)
    assert (skip.recall, skip.precision, skip.words) == (0, 0, 0)


# An independent count, which ticks off brackets one by one as EVALB does.


def marked(tree):
    """Returns (words, tags, spans), read from a tree's text with a stack."""
    words, tags, spans, stack = [], [], [], []
    for part in trees.write(tree).replace(")", " )").split():
        if part == ")":
            label, start = stack.pop()
            if label is not None and start < len(words):
                spans.append((label, start, len(words)))
        elif part.startswith("("):
            stack.append((part[1:].replace("PRT", "ADVP"), len(words)))
        else:
            tag, _ = stack.pop()
            stack.append((None, 0))
            if tag not in {",", ".", ":", "``", "''"}:
                words.append(part)
                tags.append(tag)
    return words, tags, [span for span in spans if span[0] != "TOP"]


def counted_by_marking(gold, predicted):
    (gold_words, gold_tags, gold_spans) = marked(gold)
    (words, tags, spans) = marked(predicted)
    if not words:
        return "skip"
    if words != gold_words:
        return "error"
    free, matched = list(spans), 0
    for span in gold_spans:
        if span in free:
            free.remove(span)
            matched += 1
    covered = [set(range(start, end)) for _, start, end in gold_spans]
    crossing = sum(
        any(
            (of_span := set(range(start, end))) & other
            and of_span - other
            and other - of_span
            for other in covered
        )
        for _, start, end in spans
    )
    correct = sum(a == b for a, b in zip(tags, gold_tags, strict=True))
    sizes = len(gold_spans), len(spans)
    return (matched, *sizes, crossing, len(words), correct)


def test_random_trees_are_counted_as_by_marking_brackets():
    rng = random.Random(4)
    statuses = []
    for _ in range(500):
        leaves = random_leaves(rng, rng.randint(1, 12))
        retagged = [
            leaf if rng.random() < 0.95 else Tree(rng.choice(TAGS), leaf[1])
            for leaf in leaves
        ]
        gold, predicted = random_tree(rng, leaves), random_tree(rng, retagged)
        sentence = evalb.compare(gold, predicted)
        statuses.append(sentence.status)
        expected = counted_by_marking(gold, predicted)
        if sentence.status == "valid":
            assert counts(sentence) == expected
        else:
            assert sentence.status == expected
    assert {"PRT", "ADVP"} < set(LABELS)
    assert min(map(statuses.count, ("valid", "error", "skip"))) > 10
