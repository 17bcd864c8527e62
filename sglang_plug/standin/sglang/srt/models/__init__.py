"""The model architectures, by the names that model folders use."""
