"""One update of a model, on any devices and machines, and what it changes."""
