"""The attention backends by name. A plugin adds its own with `@register_attention_backend(name)`, most simply in `init_backend()`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable

ATTENTION_BACKENDS: dict[str, Callable[[Any], Any]] = {}


def register_attention_backend(name: str) -> Callable[[Callable[[Any], Any]], Callable[[Any], Any]]:
    """Return the decorator that offers `factory(model_runner)` under `name`."""

    def register(factory: Callable[[Any], Any]) -> Callable[[Any], Any]:
        ATTENTION_BACKENDS[name] = factory
        return factory

    return register


@register_attention_backend("torch_native")
def create_torch_native_backend(runner: Any) -> Any:
    """Make the backend that needs nothing but torch."""
    from .torch_native_backend import TorchNativeAttnBackend

    return TorchNativeAttnBackend(runner)


def create_attention_backend(name: str, runner: Any) -> Any:
    """Make the backend called `name`.

    Raises:
        ValueError: nobody registered it.
    """
    if name not in ATTENTION_BACKENDS:
        known = ", ".join(sorted(ATTENTION_BACKENDS))
        raise ValueError(f"attention backend {name!r} is not registered (known: {known}); a plugin registers its own in init_backend()")
    return ATTENTION_BACKENDS[name](runner)
