"""BLEU the paper's way equals an independent count and figures by hand.

With NEWSTEST set to a folder that holds en-de/newstest2014.{en,de} and
en-fr/newstest2014.{en,fr}, the counts are also compared on that text.
"""

import math
import os
import pathlib
import random
import sys
import unicodedata

import ngram_bleu
import pytest
import sacremoses

from t2t_lite.errors import InputError
from t2t_lite.evaluation import paper_bleu

NEWSTEST = os.environ.get("NEWSTEST")
needs_newstest = pytest.mark.skipif(
    not NEWSTEST, reason="NEWSTEST does not name a folder of newstest2014"
)

REFERENCES = [
    "The 70-year-old man isn't at home - he's at St. James's.",
    "Mr. Smith paid $5,300.50 for a state-of-the-art TV set & a radio.",
    '"Why?", he asked; "because ..."',
    "A dog runs over the grass.",
]
GERMAN = [
    "Herr Dr. Müller fährt am 3. Mai z.B. mit dem E-Auto nach St. Pölten."
]


def perturbed(lines, seed=20140):
    """Returns lines with words dropped, swapped and repeated."""
    generator, result = random.Random(seed), []
    for line in lines:
        words = []
        for word in line.split(" "):
            chance = generator.random()
            words += [] if chance < 0.08 else [word] * (1 + (chance > 0.95))
        for n in range(len(words) - 1):
            if generator.random() < 0.1:
                words[n : n + 2] = reversed(words[n : n + 2])
        result.append(" ".join(words))
    return result


def tokenized(lines, language):
    """Returns tokens as bytes, split at ASCII white space only, as in Perl."""
    tokenizer = sacremoses.MosesTokenizer(lang=language)
    return [
        split_compounds(tokenizer.tokenize(line, return_str=True))
        .encode()
        .split()
        for line in lines
    ]


def split_compounds(text):
    """Splits at hyphens, byte by byte; no byte is next to two splits."""
    data, result, free = text.encode(), bytearray(), 0
    for n, byte in enumerate(data):
        between = 0 < n < len(data) - 1 and byte == ord("-") and n - 1 >= free
        if (
            between
            and not data[n - 1 : n].isspace() | data[n + 1 : n + 2].isspace()
        ):
            result += b" ##AT##-##AT## "
            free = n + 2
        else:
            result.append(byte)
    return result.decode()


def assert_agree(hypotheses, references, language):
    """Asserts that the score equals an independent count, and returns it."""
    found = paper_bleu.corpus_bleu(hypotheses, references, language)
    counts, length, reference_length = ngram_bleu.count_ngrams(
        tokenized(hypotheses, language), tokenized(references, language)
    )
    score, precisions, brevity_penalty = ngram_bleu.bleu(
        counts, length, reference_length
    )
    assert found.score == pytest.approx(score, rel=1e-12)
    assert found.precisions == pytest.approx(precisions, rel=1e-12)
    assert found.bp == pytest.approx(brevity_penalty, rel=1e-12)
    assert found.sys_len == length
    assert found.ref_len == reference_length
    return found


# By hand.


def test_one_corpus_by_hand():
    found = paper_bleu.corpus_bleu(
        ["a b c d", "a a x"], ["a b c d e", "a"], "en"
    )
    # The second "a" matches nothing: the reference has only one.
    assert found.precisions == pytest.approx((500 / 7, 60, 200 / 3, 100))
    assert (found.sys_len, found.ref_len) == (7, 6)
    assert found.bp == 1
    product = 5 / 7 * 3 / 5 * 2 / 3 * 1
    assert found.score == pytest.approx(100 * product**0.25)


def test_short_translations_are_penalized():
    found = paper_bleu.corpus_bleu(["a b c d"], ["a b c d e f"], "en")
    assert found.bp == pytest.approx(math.exp(1 - 6 / 4))
    assert found.score == pytest.approx(100 * math.exp(-0.5))


@pytest.mark.parametrize(
    "hypotheses", [["a b c x"], [""], ["a"], ["- -"]], ids=repr
)
def test_a_precision_of_0_makes_the_score_0(hypotheses):
    assert paper_bleu.corpus_bleu(hypotheses, ["a b c d e"], "en").score == 0


def test_the_references_themselves_score_100_and_case_counts():
    assert paper_bleu.corpus_bleu(
        REFERENCES, REFERENCES, "en"
    ).score == pytest.approx(100)
    lower = [line.lower() for line in REFERENCES]
    assert paper_bleu.corpus_bleu(lower, REFERENCES, "en").score < 90


def test_as_many_references_as_translations():
    with pytest.raises(InputError, match="1 hypotheses and 2 references"):
        paper_bleu.corpus_bleu(["a"], ["a", "b"], "en")


# Tokens.


@pytest.mark.parametrize(
    ("word", "expected"),
    [
        ("rich-text", "rich ##AT##-##AT## text"),
        # Matches do not overlap.
        ("a-b-c", "a ##AT##-##AT## b-c"),
        ("a-b-c-d", "a ##AT##-##AT## b-c ##AT##-##AT## d"),
        ("aa-bb-cc", "aa ##AT##-##AT## bb ##AT##-##AT## cc"),
        # Perl sees é as two bytes, one for each of the matches.
        ("a-é-c", "a ##AT##-##AT## é ##AT##-##AT## c"),
        ("x--y", "x ##AT##-##AT## -y"),
        ("-y", "-y"),
        ("y-", "y-"),
        ("y - z", "y - z"),
    ],
)
def test_compounds_are_split_as_perl_does(word, expected):
    tokenizer = sacremoses.MosesTokenizer("en")
    assert paper_bleu.tokenize(word, tokenizer) == expected
    assert split_compounds(word) == expected


@pytest.mark.parametrize(
    ("language", "line", "expected"),
    [
        ("en", "It isn't Dr. No's.", "It isn &apos;t Dr. No &apos;s ."),
        ("fr", "L'été, n'est-ce pas?", "L&apos; été , n&apos; est-ce pas ?"),
        ("de", 'Am 3. Mai z.B. "so".', "Am 3. Mai z.B. &quot; so &quot; ."),
        ("de", "A & B|C", "A &amp; B &#124; C"),
    ],
)
def test_text_is_tokenized_by_moses(language, line, expected):
    text = paper_bleu.tokenize(line, sacremoses.MosesTokenizer(language))
    assert text.replace(" ##AT##-##AT## ", "-") == expected


def test_the_signature_says_what_decides_the_score():
    version = sacremoses.__version__
    assert paper_bleu.signature("de") == (
        "nrefs:1|case:mixed|tok:moses-de|compounds:split|smooth:none"
        f"|sacremoses:{version}"
    )
    assert "tok:moses-tgt-with-abbreviations-of-en|" in paper_bleu.signature(
        "tgt"
    )


# Agreement.


def test_two_counts_agree_on_a_few_lines():
    references = [*REFERENCES * 5, *GERMAN * 5]
    found = assert_agree(perturbed(references), references, "de")
    assert 20 < found.score < 95


@pytest.mark.parametrize(
    "hypotheses",
    [["", ""], ["a", ""], ["a b c", "d"], ["a b c d e f g h", "x y z"]],
    ids=["no token", "one token", "no 4-gram", "more than the references"],
)
def test_two_counts_agree_on_few_tokens(hypotheses):
    assert_agree(hypotheses, ["a b c d e", "x y z"], "en")


def white_space():
    """Returns all characters that any library may take for white space."""
    return [
        character
        for character in map(chr, range(sys.maxunicode + 1))
        if character.isspace()
        or unicodedata.category(character) in ("Zl", "Zp", "Zs", "Cf", "Cc")
    ]


def test_every_white_space_parts_the_same_tokens():
    """Moses leaves only spaces, at which both counts split."""
    lines = [f"a{c}b-c{c} {c}d e f {c}" for c in white_space()]
    assert len(lines) > 200
    references = ["a b-c d e f"] * len(lines)
    assert [
        paper_bleu.tokenize(line, sacremoses.MosesTokenizer("en")).split()
        for line in lines
    ] == [
        [token.decode() for token in tokens]
        for tokens in tokenized(lines, "en")
    ]
    assert assert_agree(lines, references, "en").score > 20


@needs_newstest
@pytest.mark.parametrize("language", ["de", "fr"])
def test_two_counts_agree_on_newstest2014(language):
    path = pathlib.Path(NEWSTEST, f"en-{language}", f"newstest2014.{language}")
    references = path.read_text("utf-8").split("\n")[:-1]
    assert len(references) == 3003
    found = assert_agree(perturbed(references), references, language)
    assert found.bp < 1
    assert 20 < found.score < 80
