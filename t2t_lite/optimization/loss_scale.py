"""Float16's dynamic loss scale, so that small gradients do not become 0."""

from typing import NamedTuple

_FIRST_SCALE = 2.0**15
_SMALLEST_SCALE = 2.0**-10
_UPDATES_UNTIL_DOUBLED = 2000


class LossScale(NamedTuple):
    """What the loss is multiplied by before its gradients are taken.

    >>> LossScale().after(is_finite=False)
    LossScale(scale=16384.0, updates_since_scaled=0)
    >>> LossScale().after(is_finite=True)
    LossScale(scale=32768.0, updates_since_scaled=1)
    """

    scale: float = _FIRST_SCALE
    updates_since_scaled: int = 0  # since the scale changed

    def after(self, is_finite: bool) -> "LossScale":
        """Returns the scale of the next attempt.

        It is halved after a gradient that was not finite, and doubled after
        many updates that fit.

        Args:
            is_finite: whether all gradients at this scale were finite.
        """
        if not is_finite:
            return LossScale(self.scale / 2)
        updates = self.updates_since_scaled + 1
        if updates < _UPDATES_UNTIL_DOUBLED:
            return LossScale(self.scale, updates)
        return LossScale(self.scale * 2)

    @property
    def is_too_small(self) -> bool:
        """Whether the scale is so small that it cannot be the problem."""
        return self.scale < _SMALLEST_SCALE
