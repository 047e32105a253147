"""One update of a model, on any number of devices and machines."""
