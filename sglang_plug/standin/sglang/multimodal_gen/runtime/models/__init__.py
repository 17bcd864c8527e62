"""The model's parts, and the registry of their classes."""
