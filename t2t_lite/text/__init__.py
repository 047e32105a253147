"""Text as token ids, and token ids as batches."""
