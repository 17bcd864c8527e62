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
