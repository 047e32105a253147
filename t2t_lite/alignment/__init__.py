"""Which words of a source and its translation correspond, and its uses."""
