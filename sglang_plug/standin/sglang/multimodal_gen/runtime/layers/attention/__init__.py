"""Attention: layers, the choice of a backend, backends."""
