"""From a model folder's files to a model's parameters."""
