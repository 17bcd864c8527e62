"""What a pipeline can be told beside the arguments of the server."""

from .base import PipelineConfig

__all__ = ["PipelineConfig"]
