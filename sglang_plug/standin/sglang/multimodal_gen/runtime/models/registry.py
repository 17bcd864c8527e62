"""Which class a component's `_class_name` means. The platform is asked whether it can run it."""

from __future__ import annotations

from pkgutil import resolve_name
from typing import Any

from .. import platforms

_MODELS = "sglang.multimodal_gen.runtime.models"
_CLASSES = {
    "TinyDiT": f"{_MODELS}.dits.tiny_dit:TinyDiT",
    "TinyTextEncoder": f"{_MODELS}.encoders.tiny_text:TinyTextEncoder",
    "ByteTokenizer": f"{_MODELS}.encoders.tiny_text:ByteTokenizer",
    "TinyDecoder": f"{_MODELS}.vaes.tiny_vae:TinyDecoder",
    "FlowMatchEulerDiscreteScheduler": f"{_MODELS}.schedulers.flow_match:FlowMatchEulerDiscreteScheduler",
}


class BadModel(ValueError):
    """A model folder that cannot be used; the message says which file is at fault."""


class UnknownArchitecture(BadModel):
    """A model folder names a class that the stand-in does not have."""


def resolve_model_cls(architecture: str) -> type[Any]:
    """Return the class, after `verify_model_arch` let it pass.

    Raises:
        UnknownArchitecture: the stand-in has no such class.
    """
    platforms.current_platform.verify_model_arch(architecture)
    if architecture not in _CLASSES:
        raise UnknownArchitecture(
            f"the stand-in engine does not know the component class {architecture!r} (it has {', '.join(_CLASSES)}); "
            "run other models with SGLang itself"
        )
    found: type[Any] = resolve_name(_CLASSES[architecture])
    return found
