"""Requests and the pipeline."""

from .schedule_batch import OutputBatch, Req

__all__ = ["OutputBatch", "Req"]
