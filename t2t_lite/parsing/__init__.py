"""Constituency parsing, the paper's second task (section 6.3)."""
