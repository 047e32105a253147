"""The ids that mean the same in every vocabulary."""

PAD, EOS = 0, 1  # PAD fills sequences up, EOS ends them.
