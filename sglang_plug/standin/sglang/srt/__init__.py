"""The language-model runtime (SRT) of the stand-in."""
