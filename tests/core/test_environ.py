"""How the environment is read: aliases, emptiness, the allowlist."""

from __future__ import annotations

import pytest

from sglang_plug.core import environ
from sglang_plug.errors import BadVariable


@pytest.mark.parametrize(
    ("env", "platform", "diffusion", "plugins", "cpu"),
    [
        ({}, None, None, None, False),
        ({"SGLANG_PLATFORM": ""}, None, None, None, False),
        ({"SGLANG_PLATFORM": " kunlun "}, " kunlun ", None, None, False),
        ({"SGLANG_DIFFUSION_PLATFORM_OVERRIDE": " CUDA"}, None, " CUDA", None, False),
        ({"SGLANG_PLATFORM": "a", "SGL_PLATFORM": "b"}, "b", None, None, False),
        ({"SGLANG_PLATFORM": "a", "SGL_PLATFORM": ""}, None, None, None, False),
        ({"SGL_DIFFUSION_PLATFORM_OVERRIDE": "x"}, None, "x", None, False),
        ({"SGLANG_PLUGINS": ""}, None, None, None, False),
        ({"SGLANG_PLUGINS": ","}, None, None, frozenset(), False),
        ({"SGLANG_PLUGINS": " a , b,,a"}, None, None, frozenset("ab"), False),
        ({"SGL_PLUGINS": "c", "SGLANG_PLUGINS": "a"}, None, None, frozenset("c"), False),
        ({"SGLANG_USE_CPU_ENGINE": "1"}, None, None, None, True),
        ({"SGLANG_USE_CPU_ENGINE": "true"}, None, None, None, False),
        ({"SGLANG_USE_CPU_ENGINE": " 1"}, None, None, None, False),
        ({"SGL_USE_CPU_ENGINE": "1", "SGLANG_USE_CPU_ENGINE": "0"}, None, None, None, True),
        ({"sglang_platform": "a"}, None, None, None, False),
    ],
)
def test_read(env: dict[str, str], platform: str | None, diffusion: str | None, plugins: frozenset[str] | None, cpu: bool):
    found = environ.read(env)
    assert (found.platform, found.diffusion_platform, found.plugins, found.cpu_engine) == (platform, diffusion, plugins, cpu)


def test_what_counted_and_what_lost_is_kept():
    found = environ.read({"SGLANG_PLATFORM": "a", "SGL_PLATFORM": "b", "SGLANG_PLUGINS": "x"})
    assert found.raw == {"SGL_PLATFORM": "b", "SGLANG_PLUGINS": "x"}
    assert found.shadowed == {"SGLANG_PLATFORM": "SGL_PLATFORM"}


def test_this_process_is_the_default(monkeypatch: pytest.MonkeyPatch):
    for name in environ.VARIABLES:
        monkeypatch.delenv(name, raising=False)
        monkeypatch.delenv(name.replace("SGLANG_", "SGL_"), raising=False)
    monkeypatch.setenv("SGLANG_PLATFORM", "mlu")
    assert environ.read().platform == "mlu"


def test_text_that_is_no_text_is_refused_with_its_name():
    with pytest.raises(BadVariable, match="SGL_PLUGINS is not readable text") as caught:
        environ.read({"SGL_PLUGINS": "a\udcff"})
    assert caught.value.subject == "SGL_PLUGINS"
    assert "unset SGL_PLUGINS" in (caught.value.hint or "")
