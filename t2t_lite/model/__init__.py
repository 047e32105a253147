"""The model: attention, layers, encoder and decoder, and the loss."""
