"""Stands in for triton where no kernel is ever compiled."""

import sys
import types

from hollow import hollow_out

# torch asks `"cpu" in triton.backends.backends` on its first compilation: that one must be a real mapping.
backends = types.ModuleType(f"{__name__}.backends")
backends.__path__ = []
backends.backends = {}
sys.modules[backends.__name__] = backends


def cdiv(a, b):
    """Divide, rounding up: used in shape arithmetic outside kernels too."""
    return (a + b - 1) // b


def next_power_of_2(n):
    """Return the smallest power of two that is at least `n`."""
    return 1 if n < 2 else 1 << (n - 1).bit_length()


hollow_out(__name__, __version__="3.0.0", backends=backends)
