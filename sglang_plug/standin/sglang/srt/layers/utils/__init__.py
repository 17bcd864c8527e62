"""Older homes of layer classes."""
