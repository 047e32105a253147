"""From text to a trained model: updates, checkpoints, dev scores."""
