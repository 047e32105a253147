"""Which words of a translation stand for which of its source, and its uses."""
