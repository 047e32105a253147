r"""Lines as single sentences, by one rule in graphs and outside of them.

A model that was trained on single sentences drops most of a line that has
several. The rule is a few RE2 patterns, which TensorFlow's own operations
apply, so an export carries it. A sentence ends at a mark such as "." or "?",
closing quotes and brackets included, if it is followed by space and then a
capital, a digit or a script without capitals. Line breaks end one, too.

While the rule is applied, "\n" stands for the end of a sentence, and "\0" keeps
the dot of an abbreviation apart from the space after it.
"""

import itertools
from collections.abc import Iterable, Sequence
from typing import NamedTuple

import tensorflow as tf

from t2t_lite.errors import InputError

# What str.strip treats as space: Unicode's separators and some controls.
BLANK = r"[\s\p{Z}\x{b}\x{1c}-\x{1f}\x{85}]*"
_LINES_AT_ONCE = 10_000
LANGUAGE_TOKEN = r">>[^<>\s]+<<"

# Letters whose dot ends no sentence: "J. S. Bach", "z. B.", but "So do I."
_INITIAL = "[A-HJ-Za-hj-zÀ-ÖØ-öø-ÿΑ-Ωα-ωА-Юа-ю]"
_CLOSING = r"""["'”’“‘»«›‹)\]}]*"""  # noqa: RUF001
_OPENING = r"""["'“”„‚‘«»‹›(\[{¿¡…–—-]*"""  # noqa: RUF001
_MARK = "[.!?…؟۔।]"  # noqa: RUF001
_CJK_END = "([。！？][」』”’）】]*)"  # noqa: RUF001

# Abbreviations that stand before a name or within a sentence. Those that also
# end sentences, such as "etc.", are left out.
_ABBREVIATIONS = {
    "en": "Mr Mrs Ms Mx Dr Prof Rev Hon Gen Col Capt Cpt Lt Sgt Maj Cpl Adm "
    "Cmdr Gov Sen Rep Pres St Mt Ft Messrs vs cf viz approx",
    "de": "Mr Mrs Dr Prof Hr Hrn Fr Frl Dipl Ing Mag St Str bzw ca vgl evtl "
    "ggf inkl exkl zzgl bspw sog Mio Mrd",
    "fr": "MM Mme Mmes Mlle Mlles Dr Pr St Ste env",
    "es": "Sr Sra Sres Srta Dr Dra Prof Ud Uds Vd Vds EE UU Avda",
    "it": "Sig Sigg Dott Dr Prof Avv Ing Rag Geom",
    "pt": "Sr Sra Dr Dra Prof Eng Exmo",
    "nl": "dhr mevr mw Dr dr drs Ir ir Ing ing Prof prof bijv ca blz",
}
# Those that stand before a number.
_NUMBERED = {
    "en": "No Nos no nos Nr Vol vol pp Art art Fig Figs fig Sec Ch Eq Op "
    "Jan Feb Mar Apr Jun Jul Aug Sep Sept Oct Nov Dec",
    "de": "Nr Abb Abs Art Aufl Bd Jh Kap Tab Tel",
    "fr": "No no vol pp art chap fig",
    "es": "Núm núm pág págs art vol cap",
    "it": "pag pagg art num vol cap",
    "pt": "núm pág págs art vol cap",
    "nl": "nr blz art",
}
# Words that begin a sentence, whatever precedes them: "at 5 p.m. The dog"
_STARTERS = {
    "en": "The A An It He She They We You I This That These Those There But And"
}


class Splitting(NamedTuple):
    """Which lines a model takes as single sentences.

    A line of more than `whole_up_to` tokens, EOS included, is split; 0: every
    line that has several sentences.
    """

    language: str | None = None  # ISO 639-1; None if not known
    whole_up_to: int = 0
    # Whether a token such as >>deu<< at the start of a line applies to all of
    # it.
    language_tokens: bool = False

    def override(self, sentences: str, max_length: int) -> "Splitting":
        """Returns the one that a user asks for with `sentences`.

        Args:
            sentences: "auto" for this one, "split" for one that splits every
                line of several sentences, or "whole" for one that splits no
                line that the model takes.
            max_length: the most tokens that the model takes.

        Raises:
            InputError: it is none of these.
        """
        if sentences == "auto":
            return self
        if sentences == "split":
            return self._replace(whole_up_to=0)
        if sentences == "whole":
            return self._replace(whole_up_to=max_length)
        raise InputError(
            "sentences must be auto, split or whole; received "
            f"sentences={sentences!r}"
        )

    def limited_to(self, max_length: int) -> "Splitting":
        """Returns one that also splits all lines longer than a model takes."""
        return self._replace(whole_up_to=min(self.whole_up_to, max_length))


def split_tensor(
    text_B: tf.Tensor, splitting: Splitting, lengths_B: tf.Tensor | None = None
) -> tf.RaggedTensor:
    """Returns the sentences of texts, none for a blank one.

    Args:
        text_B: string tensor [B].
        splitting: Splitting.
        lengths_B: integer [B], how many tokens each text has; needed only
            if lines up to some length stay whole.

    Returns:
        string RaggedTensor [B, (sentences)]
    """
    text_B = tf.strings.regex_replace(text_B, r"\s*\n\s*", "\n")
    marked_B = _mark_ends(text_B, splitting.language)
    if splitting.whole_up_to:
        is_long_B = lengths_B > splitting.whole_up_to
        marked_B = tf.where(is_long_B, marked_B, text_B)
    sentences = tf.strings.split(marked_B, "\n")
    is_blank = tf.strings.regex_full_match(sentences.flat_values, BLANK)
    sentences = tf.ragged.boolean_mask(
        sentences, sentences.with_flat_values(~is_blank)
    )
    if splitting.language_tokens:
        sentences = _with_language_tokens(sentences, text_B)
    return sentences


def _with_language_tokens(
    sentences: tf.RaggedTensor, text_B: tf.Tensor
) -> tf.RaggedTensor:
    """Returns sentences, each with the language token that starts its text."""
    token_B = tf.strings.regex_replace(
        text_B, rf"(?s)^\s*({LANGUAGE_TOKEN})?.*$", "\\1"
    )
    token_P = tf.gather(token_B, sentences.value_rowids())
    text_P = sentences.flat_values
    has_token_P = tf.strings.regex_full_match(
        text_P, rf"(?s)\s*{LANGUAGE_TOKEN}.*"
    )
    is_alone_P = (token_P == "") | has_token_P
    joined_P = tf.strings.join([token_P, text_P], " ")
    return sentences.with_flat_values(tf.where(is_alone_P, text_P, joined_P))


def join_tensor(
    text_P: tf.Tensor, rows_P: tf.Tensor, num_rows: int | tf.Tensor
) -> tf.Tensor:
    """Returns the translations of lines, joined from those of sentences.

    Args:
        text_P: string [P]; "" adds no space.
        rows_P: integer [P], the line of each.
        num_rows: how many lines there are, L.

    Returns:
        string [L]
    """
    has_text_P = tf.not_equal(text_P, "")
    return tf.strings.unsorted_segment_join(
        tf.boolean_mask(text_P, has_text_P),
        tf.boolean_mask(rows_P, has_text_P),
        num_rows,
        separator=" ",
    )


def split_lines(
    lines: Sequence[str], splitting: Splitting, lengths: Sequence[int] = ()
) -> list[list[str]]:
    """Returns the sentences of each line, as `split_tensor` does.

    >>> split_lines(['He ran. "Stop!" she said.', "Dr. Who? No."], Splitting())
    [['He ran.', '"Stop!" she said.'], ['Dr. Who?', 'No.']]
    """
    found = split_tensor(
        tf.constant(lines, tf.string),
        splitting,
        tf.constant(lengths, tf.int32),
    )
    return [[text.decode() for text in each] for each in found.to_list()]


def multi_sentence_share(
    lines: Iterable[str], language: str | None = None
) -> float:
    """Returns the share of lines that have several sentences."""
    lines, splitting = iter(lines), Splitting(language)
    count = count_multi = 0
    while chunk := list(itertools.islice(lines, _LINES_AT_ONCE)):
        sentences = split_tensor(tf.constant(chunk), splitting)
        is_multi = sentences.row_lengths() > 1
        count_multi += int(tf.math.count_nonzero(is_multi))
        count += len(chunk)
    return count_multi / max(1, count)


def _mark_ends(text_B: tf.Tensor, language: str | None) -> tf.Tensor:
    r"""Returns texts with "\n" in place of the space between sentences."""
    # Without capitals, only the mark tells where a sentence ends.
    has_capital_B = tf.strings.regex_full_match(text_B, r"(?s).*\p{Lu}.*")
    return tf.where(
        has_capital_B,
        _replaced(text_B, _rules(language, has_capitals=True)),
        _replaced(text_B, _rules(language, has_capitals=False)),
    )


def _replaced(text_B: tf.Tensor, rules: list[tuple[str, str]]) -> tf.Tensor:
    for pattern, rewrite in rules:
        text_B = tf.strings.regex_replace(text_B, pattern, rewrite)
    return text_B


def _rules(
    language: str | None, *, has_capitals: bool
) -> list[tuple[str, str]]:
    """Returns the (pattern, rewrite) pairs that mark ends, in order."""
    words = _alternatives(_ABBREVIATIONS, language)
    numbered = _alternatives(_NUMBERED, language)
    starters = _alternatives(_STARTERS, language)
    start = r"\p{Lu}|\p{Lt}|\p{Lo}|\p{N}" if has_capitals else r"\S"
    flags = "" if has_capitals else "(?i)"
    word = rf"{flags}(^|[^\p{{L}}\p{{N}}])"
    rules = [
        (rf"{word}((?:(?:{_INITIAL}|{words})\.)+)", "\\1\\2\0"),
        (rf"{word}({numbered})\.(\s+\p{{N}})", "\\1\\2.\0\\3"),
    ]
    if language == "de":  # "am 3. Mai"
        rules.append((r"(^|\s)(\p{N}{1,2}\.)", "\\1\\2\0"))
    return [
        *rules,
        (rf"\.\0\s+((?:{starters})\s)", ".\n\\1"),
        (rf"({_MARK}{_CLOSING})\s+({_OPENING}(?:{start}))", "\\1\n\\2"),
        (r"([!?])\s+(\S)", "\\1\n\\2"),
        (_CJK_END, "\\1\n"),
        ("\0", ""),
    ]


def _alternatives(words: dict[str, str], language: str | None) -> str:
    """Returns a pattern for the language's words; for all if it is unknown."""
    own = words.get(language, " ".join(words.values())).split()
    return "|".join(dict.fromkeys(own))
