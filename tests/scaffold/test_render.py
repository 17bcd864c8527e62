"""Templates become texts; what a user typed is never read as a template."""

from __future__ import annotations

import errno
import os
from typing import TYPE_CHECKING

import pytest

from sglang_plug.errors import ScaffoldError
from sglang_plug.scaffold import platform
from sglang_plug.scaffold.render import render
from tests.scaffold.making import FORMS, answers

if TYPE_CHECKING:
    from pathlib import Path


def test_a_value_is_put_in_and_not_rendered() -> None:
    values = platform.values(answers())
    files = render("platform", {**values, "prefix": "{{ 7 * 7 }}{% raw %}"})
    assert '"""{{ 7 * 7 }}{% raw %} for SGLang' in files["my_chip/__init__.py"]
    assert not any("49" in text for path, text in files.items() if path.endswith("__init__.py"))


def test_an_answer_that_no_template_asks_for_is_a_mistake() -> None:
    with pytest.raises(KeyError, match="nonsense"):
        render("platform", {"nonsense": 1})


def test_a_full_folder_for_temporary_files_is_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(*_: object, **__: object) -> None:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC), "/tmp/x")

    monkeypatch.setattr("cookiecutter.generate.generate_files", full)
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    with pytest.raises(ScaffoldError, match="temporary files") as refusal:
        platform.files(answers())
    assert (refusal.value.subject, refusal.value.cause) == ("/tmp/x", "No space left on device")
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("form", FORMS)
def test_nothing_of_the_template_language_is_left(form: str) -> None:
    for path, text in platform.files(answers(**FORMS[form])).items():
        rest = text.replace("${{ matrix.python }}", "") if path.endswith("ci.yml") else text
        assert "{{" not in rest, path
        assert "{%" not in rest, path
        assert "cookiecutter" not in rest, path
        assert text.endswith("\n") or not text, path
        assert "\n\n\n\n" not in text, path


def test_files_that_belong_to_another_runtime_are_left_out() -> None:
    srt, diffusion = platform.files(answers(hooks=False)), platform.files(answers(srt=False, diffusion=True, hooks=False))
    assert {"my_chip/platform.py", "my_chip/device.py", "my_chip/allocator.py"} <= srt.keys()
    assert not {"my_chip/platform.py", "my_chip/device.py", "my_chip/allocator.py"} & diffusion.keys()
    assert {"my_chip/diffusion_platform.py", "my_chip/ops.py"} <= diffusion.keys()
    assert not {"my_chip/diffusion_platform.py", "my_chip/ops.py", "my_chip/hooks.py"} & srt.keys()


def test_methods_carry_what_the_release_does_with_them() -> None:
    device = platform.files(answers())["my_chip/device.py"]
    assert "Wait for the device. [0.5.23: called from 50 places]" in device
    assert "Return what people call it. [0.5.23: never called]" in device
    assert "Wait for the device. [0.5.21: called from 39 places]" in platform.files(answers(release="0.5.21"))["my_chip/device.py"]


def test_methods_that_came_later_are_not_there() -> None:
    assert "post_load_model" in platform.files(answers())["my_chip/platform.py"]
    assert "post_load_model" not in platform.files(answers(release="0.5.21"))["my_chip/platform.py"]


def test_a_release_without_diffusion_platforms_is_refused() -> None:
    with pytest.raises(ScaffoldError, match="no diffusion platforms") as refusal:
        platform.files(answers(diffusion=True, release="0.5.20"))
    assert refusal.value.cause == "they exist from 0.5.21 on"
