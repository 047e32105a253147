"""The ids that mean the same in every vocabulary."""

PAD, EOS = 0, 1  # Fills sequences up; ends them.
