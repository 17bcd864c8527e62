"""Collective operations by kind of device."""
