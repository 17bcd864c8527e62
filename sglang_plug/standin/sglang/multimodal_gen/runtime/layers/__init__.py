"""Layers that a platform can take over."""
