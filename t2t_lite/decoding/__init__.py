"""From source ids to translations: beam search and what surrounds it."""
