"""Trained models for clients: SavedModels for TF Serving, and a server."""
