"""Words for a reader."""


def counted(count: int, noun: str) -> str:
    """Returns a number and its noun.

    >>> counted(1, "pair"), counted(29_000, "pair")
    ('1 pair', '29000 pairs')
    """
    return f"{count} {noun}" if count == 1 else f"{count} {noun}s"
