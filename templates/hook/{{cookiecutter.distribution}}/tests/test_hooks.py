"""The hook fits its target, in the release that is installed (or in the stand-in)."""

from __future__ import annotations

from sglang_plug.testing import HookContract


class Test{{ cookiecutter.prefix }}(HookContract):
    runtime = "{{ cookiecutter.runtime }}"
    entry_point = "{{ cookiecutter.entry_point }}"
