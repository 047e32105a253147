"""How good a model is: scores, perplexity, and the evaluation card."""
