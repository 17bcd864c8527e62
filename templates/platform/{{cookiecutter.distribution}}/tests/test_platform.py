{% if cookiecutter.srt %}
"""The SRT platform keeps SGLang's contract: on SGLang where it is installed, on the stand-in where it is not."""

from __future__ import annotations

from sglang_plug.testing import PlatformContract


class Test{{ cookiecutter.prefix }}Platform(PlatformContract):
    runtime = "srt"
    entry_point = "{{ cookiecutter.package }}"
{% endif %}
