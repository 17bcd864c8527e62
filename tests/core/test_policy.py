"""What each release keeps of the chain, against a table taken from running every release."""

from __future__ import annotations

import pytest

from sglang_plug.core.policy import DIFFUSION, SRT, policy
from sglang_plug.errors import CatalogueError

RELEASES = [
    *("0.5.11", "0.5.12", "0.5.12.post1", "0.5.13", "0.5.13.post1", "0.5.14", "0.5.15", "0.5.15.post1", "0.5.16"),
    *("0.5.17", "0.5.18", "0.5.19", "0.5.20", "0.5.21", "0.5.22", "0.5.23"),
]
SRT_CHAIN = {
    "0.5.11": "",
    "0.5.12": "",
    "0.5.12.post1": "",
    "0.5.13": "cuda rocm",
    "0.5.13.post1": "cuda rocm",
    "0.5.14": "cpu cuda rocm",
    "0.5.15": "cpu cuda rocm",
    "0.5.15.post1": "cpu cuda rocm",
    "0.5.16": "cpu cuda rocm",
    "0.5.17": "cpu cuda rocm xpu",
    "0.5.18": "cpu cuda rocm xpu",
    "0.5.19": "cpu cuda rocm xpu",
    "0.5.20": "cpu cuda npu rocm xpu",
    "0.5.21": "cpu cuda npu rocm xpu",
    "0.5.22": "cpu cuda npu rocm xpu musa mps",
    "0.5.23": "cpu sail cuda npu rocm xpu musa mps",
}
SIX = {"cpu", "cuda", "rocm", "mps", "npu", "musa"}


@pytest.mark.parametrize("release", RELEASES)
def test_srt_fallbacks(release: str):
    rules = policy("srt", release)
    assert [entry.name for entry in rules.builtins] == SRT_CHAIN[release].split()
    assert rules.base is not None
    assert (rules.base.name, rules.base.device_name, rules.base.device_type) == ("base", "unknown", "cpu")
    assert rules.excludes_own_dist


@pytest.mark.parametrize("release", RELEASES)
def test_diffusion(release: str):
    rules = policy("diffusion", release)
    number = tuple(map(int, release.split(".")[:3]))
    assert [entry.name for entry in rules.builtins] == ["mps", "xpu", "rocm", "cuda", "npu", "musa", "cpu"]
    assert (rules.selector is None) == (number < (0, 5, 13))
    assert (rules.platform_group is None) == (rules.hook_group is None) == (number < (0, 5, 21))
    aliases = SIX | {"xpu"} if number >= (0, 5, 20) else SIX if number >= (0, 5, 13) else set()
    assert rules.aliases == aliases
    assert rules.builtin("cuda").detector == ("nvml" if number >= (0, 5, 17) else "nvml-only")


def test_the_document_is_the_default():
    assert policy("srt") is SRT
    assert policy("diffusion", "document") is DIFFUSION
    assert [entry.name for entry in SRT.builtins] == ["cpu", "cuda", "rocm", "xpu"]  # S3.2
    assert DIFFUSION.aliases == SIX  # S4.1: XPU stays automatic-only
    assert DIFFUSION.reserved == SIX | {"xpu"}
    assert not SRT.excludes_own_dist


@pytest.mark.parametrize(
    ("written", "same_as"), [("v0.5.23", "0.5.23"), ("0.5.23+standin", "0.5.23"), ("0.5.24.dev3+g1", "0.5.23"), ("1.0", "0.5.23")]
)
def test_other_ways_to_write_a_release(written: str, same_as: str):
    assert policy("srt", written).builtins == policy("srt", same_as).builtins


@pytest.mark.parametrize(
    ("runtime", "release", "says"),
    [
        ("srt", "0.5.10", "no plugin system"),
        ("srt", "main", "not a release"),
        ("llm", None, "no such runtime"),
        ("srt", "", "not a release"),
    ],
)
def test_what_is_no_policy(runtime: str, release: str | None, says: str):
    with pytest.raises(CatalogueError, match=says):
        policy(runtime, release)


def test_built_ins_by_name():
    assert SRT.builtin("rocm").device_type == "cuda"
    assert SRT.builtin("base").enum == "UNSPECIFIED"
    assert DIFFUSION.builtin("npu").qualname == "sglang.multimodal_gen.runtime.platforms.npu.NPUPlatformBase"
    with pytest.raises(KeyError):
        SRT.builtin("tpu")
