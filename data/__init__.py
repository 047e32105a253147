"""Where sentence pairs come from; nothing in t2t_lite imports this package."""
