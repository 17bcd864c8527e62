"""The only globals: this process's two runtimes, under the document's rules."""

from __future__ import annotations

from sglang_plug.core.policy import DIFFUSION, SRT
from sglang_plug.core.runtime import Runtime

srt = Runtime(SRT)
diffusion = Runtime(DIFFUSION)
