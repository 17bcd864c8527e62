"""{{ "An" if cookiecutter.type in ("around", "after") else "A" }} {{ cookiecutter.type }} hook on `{{ cookiecutter.target }}`.

SGLang calls `register` once in every process that loads plugins; nothing of `sglang` is imported before that.
"""

from __future__ import annotations

{% if not cookiecutter.replaces_class %}
{% if cookiecutter.imports %}
from collections.abc import {{ cookiecutter.imports | join(", ") }}
{% endif %}
from typing import Any

{% endif %}
TARGET = "{{ cookiecutter.target }}"


def register() -> None:
    """Register the hook with SGLang's {{ "SRT" if cookiecutter.runtime == "srt" else "diffusion" }} registry."""
    from {{ cookiecutter.registry }} import HookRegistry, HookType

{% if cookiecutter.replaces_class %}
    from {{ cookiecutter.package }}.{{ cookiecutter.module }}_class import {{ cookiecutter.function }}

{% endif %}
    HookRegistry.register(TARGET, {{ cookiecutter.function }}, HookType.{{ cookiecutter.type | upper }})
{% if not cookiecutter.replaces_class %}


{% for line in cookiecutter.notes %}
{{ line }}
{% endfor %}
{% for line in cookiecutter.header %}
{{ line }}
{% endfor %}
    """{{ cookiecutter.summary }}"""
{% for line in cookiecutter.body %}
    {{ line }}
{% endfor %}
{% endif %}
