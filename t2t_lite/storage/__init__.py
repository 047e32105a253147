"""Checkpoints, and the directory of a run."""
