"""The paper's length penalty compared with that of other programs.

They divide the score of an output by length^p, and the paper by
((5 + length) / 6)^alpha. With alpha = 1.2 p, one more token weighs the same in
both for an output of 25 tokens.
"""

_ALPHA_PER_EXPONENT = 1.2
_DIGITS = 4


def nearest_alpha(exponent: float) -> float:
    """Returns the paper's alpha that comes nearest to length^exponent.

    >>> nearest_alpha(0.5), nearest_alpha(0)
    (0.6, 0.0)
    """
    return round(max(0.0, _ALPHA_PER_EXPONENT * exponent), _DIGITS)


def nearest_exponent(alpha: float) -> float:
    """Returns the exponent of a length that comes nearest to an alpha.

    >>> nearest_exponent(0.6)
    0.5
    """
    return round(alpha / _ALPHA_PER_EXPONENT, _DIGITS)
