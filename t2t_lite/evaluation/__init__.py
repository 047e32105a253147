"""How good a model is: scores, perplexity, reports and the evaluation card."""
