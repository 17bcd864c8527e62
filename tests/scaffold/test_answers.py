"""Names are judged in one place: what passes can be installed and imported, what does not comes with a reason and a proposal."""

from __future__ import annotations

import ast
import keyword
import re
import sys

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sglang_plug.errors import ScaffoldError
from sglang_plug.scaffold.answers import MAX_NAME, Name, judge_device_type, judge_module, judge_name, propose

RESERVED = {"cpu", "cuda", "rocm", "xpu", "mps", "npu", "musa"}  # S4.1
NAMES = st.one_of(
    st.text(max_size=MAX_NAME + 8),
    st.from_regex(r"[A-Za-z0-9._-]{1,20}", fullmatch=True),
    st.sampled_from(
        [
            *keyword.kwlist,
            *RESERVED,
            "torch",
            "sglang",
            "os",
            "json",
            "../x",
            "a/b",
            "my plugin",
            "1abc",
            "-x",
            "{{ 7*7 }}",
            "é",
            "\x1b[31m",
        ]
    ),
)


def judged(text: str) -> tuple[Name | None, ScaffoldError | None]:
    try:
        return judge_name(text), None
    except ScaffoldError as refusal:
        return None, refusal


@given(NAMES)
def test_a_name_is_good_or_refused_with_a_proposal_that_is_good(text: str) -> None:
    name, refusal = judged(text)
    if refusal is not None:
        assert refusal.cause
        name, _ = judged(re.search(r"new-platform (\S+)`", refusal.hint)[1])
    assert re.fullmatch(r"[a-z]([a-z0-9-]*[a-z0-9])?", name.distribution)  # PEP 503 form
    ast.parse(f"import {name.package}\nclass {name.prefix}Platform: ...")
    assert name.package not in sys.stdlib_module_names | RESERVED | {"sglang", "torch"}


@given(NAMES)
def test_judging_again_changes_nothing(text: str) -> None:
    good = propose(text)
    assert judge_name(good).distribution == judge_name(judge_name(good).distribution).distribution


@pytest.mark.parametrize(
    ("text", "reason", "proposal"),
    [
        ("", "empty", "my-device"),
        ("  ", "empty", "my-device"),
        ("class", "keyword", "class-device"),
        ("platform", "standard library", "platform-device"),
        ("torch", "PyTorch", "torch-device"),
        ("sglang", "SGLang", "sglang-device"),
        ("SGL__kernel", "SGLang", "sgl-kernel-device"),
        ("torch.mlu", "torch's extensions", "torch-mlu-device"),
        ("Flash-Attn", "library that SGLang imports", "flash-attn-device"),
        ("cuda", "built-in platform", "cuda-device"),
        ("CPU", "built-in platform", "cpu-device"),
        ("tests", "folder of the project", "tests-device"),
        ("my plugin", "' '", "my-plugin"),
        ("1abc", "digit", "dev-1abc"),
        ("../evil", "separator", "evil"),
        ("a/b", "separator", "b"),
        ("-x", "start with a letter", "x"),
        ("x-", "end with a letter", "x"),
        ("chip_ü", "ASCII", "chip-u"),
        ("芯片", "ASCII", "my-device"),
        ("a" * 41, "41 characters", "a" * 33),
        ("{{ 7*7 }}", "PEP 508", "dev-7-7"),
        ("x\x1b[31m", r"'\x1b'", "x-31m"),
    ],
)
def test_a_bad_name_is_refused_with_its_reason(text: str, reason: str, proposal: str) -> None:
    with pytest.raises(ScaffoldError) as refusal:
        judge_name(text)
    assert reason in refusal.value.cause
    assert refusal.value.hint == f"`sglang-plug new-platform {proposal}` would do"


@pytest.mark.parametrize(
    ("text", "distribution", "package", "prefix"),
    [
        ("mydev", "mydev", "mydev", "Mydev"),
        ("My.Chip_2", "my-chip-2", "my_chip_2", "MyChip2"),
        ("sglang-kunlun", "sglang-kunlun", "sglang_kunlun", "SglangKunlun"),
    ],
)
def test_a_good_name_takes_its_forms(text: str, distribution: str, package: str, prefix: str) -> None:
    name = judge_name(text)
    assert (name.distribution, name.package, name.prefix) == (distribution, package, prefix)


@pytest.mark.parametrize("text", ["cpu", "cuda", "mlu", "privateuseone", "my_dev2"])
def test_device_types_are_taken_as_they_are(text: str) -> None:
    assert judge_device_type(text) == text


@pytest.mark.parametrize(
    ("text", "proposal"),
    [("cuda:0", "cuda"), ("MLU", "mlu"), ("", "cpu"), ("1x", "x"), ("class", "cpu"), ("a b", "ab"), ("{{x}}", "x"), ("é", "cpu")],
)
def test_a_bad_device_type_is_refused(text: str, proposal: str) -> None:
    with pytest.raises(ScaffoldError) as refusal:
        judge_device_type(text)
    assert refusal.value.hint == f"`--device-type {proposal}`"


@pytest.mark.parametrize(("text", "hint"), [("privateuse1", "privateuseone"), ("hip", "cuda"), ("meta", "cpu")])
def test_a_device_type_that_torch_knows_otherwise_is_refused(text: str, hint: str) -> None:
    with pytest.raises(ScaffoldError) as refusal:
        judge_device_type(text)
    assert refusal.value.hint.startswith(f"`--device-type {hint}`")


def test_modules_inside_a_package_may_bear_any_importable_name() -> None:
    assert judge_module("json") == "json"
    assert judge_module("my-hook") == "my_hook"
    with pytest.raises(ScaffoldError):
        judge_module("for")
    with pytest.raises(ScaffoldError):
        judge_module("../x")
