"""Trained models as SavedModels for TF Serving."""
