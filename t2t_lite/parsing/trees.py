"""Constituency trees: read, normalized, written, and as sequences of symbols.

    (TOP (S (NP (DT The) (NN cat)) (VP (VBZ sleeps)) (. .)))

is, to a sequence model, the words `The cat sleeps .` on the way in and, on the
way out, without the words,

    (TOP (S (NP DT NN )NP (VP VBZ )VP . )S )TOP

These are the symbols of Vinyals et al. 2015 ("Grammar as a Foreign Language"):
an opening bracket with its label, the part-of-speech tag where a word stands,
a closing bracket with the label of what it closes. (In their own experiments
every tag was XX; section 6.3 does not say.) A normalized tree has exactly one
outermost bracket, `(TOP ... )TOP`, whatever stands inside it: several children,
or a single tag.

Source: section 6.3
"""

import dataclasses
import functools
import re
from collections.abc import Iterable, Iterator, Sequence
from typing import NamedTuple, Union

from t2t_lite.errors import InputError

ROOT = "TOP"  # The one root label that EVALB's COLLINS.prm leaves out.
TRACE = "-NONE-"
MAX_DEPTH = 200  # Brackets; Python functions can safely recurse this deep.
_ROOTS = {"", ROOT, "ROOT", "S1"}
_TOKEN = re.compile(r"[()]|[^() \t\n\r\f\v]+")
_WORD = re.compile(r"[^ \t\n\r\f\v]+")
_NOT_IN_A_WORD = re.compile(r"[() \t\n\r\f\v]")


class Tree(NamedTuple):
    """A constituent, or a pre-terminal: the part of speech of one word.

    label: str, "" for an outermost bracket that has none.
    children: of a constituent, one or more Trees; of a pre-terminal, its word.
    """

    label: str
    children: tuple[Union["Tree", str], ...]

    @property
    def is_pre_terminal(self) -> bool:
        """Returns whether this is a tag with its word."""
        return isinstance(self.children[0], str)


def pre_terminals(tree: Tree) -> Iterator[Tree]:
    """Yields the tags with their words, from left to right."""
    if tree.is_pre_terminal:
        yield tree
    else:
        for child in tree.children:
            yield from pre_terminals(child)


def words(tree: Tree) -> list[str]:
    """Returns the words of a tree, from left to right."""
    return [leaf.children[0] for leaf in pre_terminals(tree)]


def tags(tree: Tree) -> list[str]:
    """Returns the part-of-speech tag of each word."""
    return [leaf.label for leaf in pre_terminals(tree)]


# Text.


@dataclasses.dataclass(slots=True)
class _Bracket:
    """A bracket that is open while its text is read."""

    line: int
    label: str = ""
    children: list[Tree | str] = dataclasses.field(default_factory=list)


def read(text: str | Iterable[str], name: str = "the text") -> Iterator[Tree]:
    """Yields the trees of bracketed text, as treebanks write them.

    A tree may take part of a line, a line, or several. Only ASCII white space
    separates, because words may hold U+00A0 and the like. A bracket with
    several words, of which CRAFT has five, is read as one bracket for each
    word: `(NN a b)` as `(NN a) (NN b)`.

    Args:
        text: all of it, or its lines.
        name: of the text, for messages.

    Raises:
        InputError: while reading, at the first bracket or word that is wrong.
    """
    lines = text.split("\n") if isinstance(text, str) else text
    stack: list[_Bracket] = []
    number = 0
    for number, line in enumerate(lines, start=1):
        try:
            for token in _TOKEN.findall(line):
                outermost = _take(token, stack, number)
                if outermost:
                    yield outermost
        except InputError as error:
            raise InputError(f"{name}, line {number}: {error}") from None
    if stack:
        raise InputError(
            f"{name}, line {stack[0].line}: the tree that begins here is not "
            f"closed; {len(stack)} closing brackets are missing at the end"
        )


def split_words(line: str) -> list[str]:
    """Returns the words of a sentence: what ASCII white space separates."""
    return _WORD.findall(line)


def read_one(line: str) -> Tree:
    """Returns the tree that a line is.

    Raises:
        InputError: it is not a tree, or it is several.
    """
    found = list(read(line, repr(line)))
    if len(found) != 1:
        raise InputError(f"a line must be one tree; received {line!r}")
    return found[0]


def _take(token: str, stack: list[_Bracket], line: int) -> Tree | None:
    """Puts a token on the stack; returns the tree that it completes, if any."""
    if token == "(":
        if len(stack) == MAX_DEPTH:
            raise InputError(f"a tree may be at most {MAX_DEPTH} brackets deep")
        stack.append(_Bracket(line))
    elif not stack:
        what = "a closing bracket" if token == ")" else f"the word {token!r}"
        raise InputError(f"{what} stands outside of any tree")
    elif token == ")":
        return _closed(stack)
    elif stack[-1].label or stack[-1].children:
        stack[-1].children.append(token)
    else:
        stack[-1].label = token
    return None


def _closed(stack: list[_Bracket]) -> Tree | None:
    """Removes the innermost bracket; returns it if it is the outermost."""
    bracket = stack.pop()
    label, children = bracket.label, bracket.children
    num_words = sum(isinstance(child, str) for child in children)
    if not children:
        raise InputError(f"({label}) holds no word")
    if num_words not in (0, len(children)):
        word = next(child for child in children if isinstance(child, str))
        raise InputError(
            f"the word {word!r} stands beside brackets in ({label} ...); it "
            "needs a tag of its own, (TAG word)"
        )
    if not label and stack:
        raise InputError(
            "only an outermost bracket may have no label: is the tree that "
            f"begins on line {stack[0].line} not closed?"
        )
    if not label and num_words:
        raise InputError("a word needs a tag, (TAG word)")
    if not num_words:
        closed = [Tree(label, tuple(children))]
    else:
        closed = [Tree(label, (word,)) for word in children]
    if stack:
        stack[-1].children.extend(closed)
        return None
    if len(closed) > 1:
        raise InputError(
            f"({label} ...) holds several words, and each needs a tag"
        )
    return closed[0]


def write(tree: Tree) -> str:
    """Returns a tree as one line of bracketed text.

    Parentheses in words become -LRB- and -RRB-.

    Raises:
        InputError: a word is empty or holds white space.
    """
    if tree.is_pre_terminal:
        return f"({tree.label} {escape(tree.children[0])})"
    return f"({tree.label} {' '.join(map(write, tree.children))})"


def escape(word: str) -> str:
    """Returns a word as a treebank writes it, with -LRB- for `(`.

    Raises:
        InputError: it is empty or holds white space.
    """
    word = word.replace("(", "-LRB-").replace(")", "-RRB-")
    if not word or _NOT_IN_A_WORD.search(word):
        raise InputError(
            f"a word of a tree must hold no white space; received {word!r}"
        )
    return word


# Normalization.


def normalize(tree: Tree) -> Tree | None:
    """Returns a tree as parsers are trained and scored on it.

    Traces go, and so do constituents that held only traces. Labels lose what
    follows the first `-`, `=` or `|` (NP-SBJ-1 becomes NP, ADVP|PRT becomes
    ADVP), but those that begin with `-`, like -LRB-, stay. The outermost
    bracket is TOP: one without a label, or called ROOT or S1, takes that name,
    and a tree without such a bracket gets one. Applying it again changes
    nothing more.

    Returns:
        The Tree, or None if no word is left.
    """
    tree = _without_traces(tree)
    if tree is None:
        return None
    children = tree.children if _is_root(tree) else (tree,)
    while len(children) == 1 and _is_root(children[0]):
        children = children[0].children
    return Tree(ROOT, children)


def _is_root(tree: Tree) -> bool:
    return tree.label in _ROOTS and not tree.is_pre_terminal


def _without_traces(tree: Tree) -> Tree | None:
    """Returns a tree without traces and function tags, None if it is empty."""
    if tree.is_pre_terminal:
        is_trace = tree.label == TRACE
        return None if is_trace else Tree(_category(tree.label), tree.children)
    kept = tuple(filter(None, map(_without_traces, tree.children)))
    return Tree(_category(tree.label), kept) if kept else None


@functools.cache
def _category(label: str) -> str:
    return label if label[:1] == "-" else re.sub(r"(?<=.)[-=|].*", "", label)


# Symbols.


def opening(label: str) -> str:
    """Returns the symbol that opens a constituent."""
    return "(" + label


def closing(label: str) -> str:
    """Returns the symbol that closes a constituent."""
    return ")" + label


def is_opening(symbol: str) -> bool:
    """Returns whether a symbol opens a constituent."""
    return symbol[:1] == "("


def is_closing(symbol: str) -> bool:
    """Returns whether a symbol closes a constituent."""
    return symbol[:1] == ")"


def is_tag(symbol: str) -> bool:
    """Returns whether a symbol stands for a word."""
    return not is_opening(symbol) and not is_closing(symbol)


def linearize(tree: Tree) -> list[str]:
    """Returns the symbols of a tree, without its words.

    Source: section 6.3; Vinyals et al. 2015
    """
    if tree.is_pre_terminal:
        return [tree.label]
    inner = [symbol for child in tree.children for symbol in linearize(child)]
    return [opening(tree.label), *inner, closing(tree.label)]


def delinearize(symbols: Sequence[str], words: Sequence[str]) -> Tree:
    """Returns the tree that `linearize` made these symbols from.

    Args:
        symbols: exactly one outermost bracket and what is in it.
        words: as many as there are tags.

    Raises:
        InputError: the brackets do not match, one holds nothing, or the number
            of tags is not the number of words.
    """
    _require_tag_per_word(sum(map(is_tag, symbols)), words)
    remaining = iter(words)
    outermost: list[Tree] = []
    stack: list[tuple[str, list[Tree]]] = [("", outermost)]
    for position, symbol in enumerate(symbols, start=1):
        label = symbol[1:]
        if len(stack) == 1 and (outermost or not is_opening(symbol)):
            _refuse(
                position,
                symbol,
                "a tree must have exactly one outermost bracket",
            )
        if is_opening(symbol):
            if len(stack) > MAX_DEPTH:
                _refuse(position, symbol, f"at most {MAX_DEPTH} brackets deep")
            stack.append((label, []))
        elif is_closing(symbol):
            opened, children = stack.pop()
            if opened != label:
                _refuse(position, symbol, f"{closing(opened)} must come first")
            if not children:
                _refuse(
                    position,
                    symbol,
                    "a constituent must hold at least one word",
                )
            stack[-1][1].append(Tree(label, tuple(children)))
        else:
            stack[-1][1].append(Tree(symbol, (next(remaining),)))
    if not outermost:
        raise InputError(
            f"the tree is not closed: {len(stack) - 1} brackets are open after "
            f"{len(symbols)} symbols"
        )
    return outermost[0]


def _require_tag_per_word(num_tags: int, words: Sequence[str]) -> None:
    if num_tags != len(words):
        raise InputError(
            f"each word needs one tag; received {num_tags} tags for "
            f"{len(words)} words"
        )


def _refuse(position: int, symbol: str, rule: str):
    raise InputError(f"symbol {position}, {symbol!r}: {rule}")


def symbols(trees: Iterable[Tree]) -> list[str]:
    """Returns the sorted symbols of the linearizations of these trees."""
    return sorted({symbol for tree in trees for symbol in linearize(tree)})
