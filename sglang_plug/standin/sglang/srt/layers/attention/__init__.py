"""Attention backends, chosen by name."""
