"""Searches with a model, and what all predictors of lines share."""
