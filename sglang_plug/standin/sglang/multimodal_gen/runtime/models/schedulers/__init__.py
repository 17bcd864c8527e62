"""Noise schedules."""
