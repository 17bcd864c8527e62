"""{{ cookiecutter.prefix }} for SGLang: the activation callbacks. Imports neither SGLang nor torch.

SGLang calls them while it is itself still being imported, so anything from `sglang` would be half-built here.
"""

from __future__ import annotations

from {{ cookiecutter.package }} import hardware
{% if cookiecutter.srt %}


def activate() -> str | None:
    """Return the SRT platform class where the device is present, else None.

    The colon form lets SGLang report the true cause when the class cannot be imported.
    """
    if not hardware.available():
        return None
    return "{{ cookiecutter.package }}.platform:{{ cookiecutter.prefix }}Platform"
{% endif %}
{% if cookiecutter.diffusion %}


def activate_diffusion() -> str | None:
    """Return the diffusion platform class where the device is present, else None."""
    if not hardware.available():
        return None
    return "{{ cookiecutter.package }}.diffusion_platform:{{ cookiecutter.prefix }}DiffusionPlatform"
{% endif %}
