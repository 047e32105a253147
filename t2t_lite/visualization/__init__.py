"""Attention as pages and pictures (the paper's Figures 3 to 5)."""
