"""What a model folder says about its model."""
