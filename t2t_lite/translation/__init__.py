"""Lines of text to their translations."""
