"""Offline scripts: what spawn runs again in every child."""

from __future__ import annotations

import pytest

SRT = "import sglang as sgl\n{}"
DIFFUSION = "from sglang.multimodal_gen import DiffGenerator\n{}"
GENERATOR = "from sglang.multimodal_gen import DiffGenerator\n"
START = "g = DiffGenerator.from_pretrained('m')\n"


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (SRT.format("llm = sgl.Engine(model_path='m')\n"), ["SP704"]),
        (SRT.format("if __name__ == '__main__':\n    llm = sgl.Engine(model_path='m')\n"), []),
        (SRT.format("def main():\n    llm = sgl.Engine(model_path='m')\n"), []),
        ("from sglang import Engine\nEngine(model_path='m')\n", ["SP704"]),
        (DIFFUSION.format(START), ["SP704"]),
        (DIFFUSION.format(f"if __name__ == '__main__':\n    {START}"), []),
        (f"from sglang.multimodal_gen import DiffGenerator, SamplingParams\nif __name__ == '__main__':\n    {START}", ["SP705"]),
        (f"{GENERATOR}import sglang.multimodal_gen.envs\nif __name__ == '__main__':\n    {START}", []),
        (
            f"{GENERATOR}from sglang.multimodal_gen.runtime.platforms import current_platform\nif __name__ == '__main__':\n    {START}",
            [],
        ),
        (f"{GENERATOR}if __name__ == '__main__':\n    from sglang.multimodal_gen import SamplingParams\n    {START}", []),
        ("from sglang.multimodal_gen import SamplingParams\n", []),
    ],
)  # fmt: skip
def test_scripts(codes, text, expected):
    assert codes({"run.py": text}) == expected


@pytest.mark.parametrize(
    "text",
    [
        b"import sglang\nx = " + b"-" * 3000 + b"1\n",
        b"import sglang\nx = " + b"(" * 150 + b")" * 150 + b"\n",
        b"import sglang\0\n",
        b"# -*- coding: nonsense -*-\nimport sglang\n",
        b"import sglang\n\xff\xfe\n",
        b"\xef\xbb\xbfimport sglang\n",
        b"sglang = sglang\nif sglang:\n    from sglang.srt import utils\n",
        b"from sglang.srt.plugins.hook_registry import HookRegistry\nx = x\nHookRegistry.register(x, x, x)\n",
        b"from sglang.srt.plugins.hook_registry import HookRegistry as H\ndef f(a): f(a); H.register(a, a)\nf(f)\n",
        b"from sglang.srt.plugins.hook_registry import HookRegistry as H\nfor i in range(10**9): H.register('a' * i, i)\n",
        b"from sglang.srt.plugins.hook_registry import HookRegistry as H\nH.register('{:>999999999}'.format(1), 1)\nH.register(*[])\nH.register()\n",  # noqa: E501 - a row of a table
        b"from sglang import *\nfrom . import x\nfrom .. import y\nfrom ...... import z\nimport sglang.\n",
        b"class A(A): pass\nfrom sglang.srt.platforms.interface import SRTPlatform\nclass B(SRTPlatform, B): pass\n",
    ],
)
def test_no_source_breaks_the_reader(plugins, text):
    plugins.lay({"mod.py": ""})
    (plugins.root / "mod.py").write_bytes(text)
    from sglang_plug.checks.source.run import check

    check(plugins.root, ("0.5.11", "0.5.23"))
