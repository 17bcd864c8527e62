{% if cookiecutter.hooks %}
"""The hooks fit their targets, in the release that is installed (or in the stand-in)."""

from __future__ import annotations

from sglang_plug.testing import HookContract
{% if cookiecutter.srt %}


class Test{{ cookiecutter.prefix }}Hooks(HookContract):
    runtime = "srt"
    entry_point = "{{ cookiecutter.package }}"
{% endif %}
{% if cookiecutter.diffusion %}


class Test{{ cookiecutter.prefix }}DiffusionHooks(HookContract):
    runtime = "diffusion"
    entry_point = "{{ cookiecutter.package }}"
{% endif %}
{% endif %}
