"""One rank's model and its forward passes."""
