{% if cookiecutter.diffusion %}
"""The diffusion platform keeps SGLang's contract, and its custom ops compute what SGLang's own do."""

from __future__ import annotations

import pytest
from sglang_plug.testing import PlatformContract


class Test{{ cookiecutter.prefix }}DiffusionPlatform(PlatformContract):
    runtime = "diffusion"
    entry_point = "{{ cookiecutter.package }}"


class Norm:
    """The parts of an RMSNorm that its forward reads."""

    def __init__(self, weight, variance_epsilon=1e-6):
        self.weight = weight
        self.variance_epsilon = variance_epsilon


@pytest.mark.parametrize("with_residual", [False, True])
def test_rms_norm_is_the_textbook_formula(with_residual):
    torch = pytest.importorskip("torch")
    from {{ cookiecutter.package }}.ops import rms_norm_forward

    weight = torch.tensor([1.0, 2.0])
    x = torch.tensor([[3.0, 4.0]])  # root mean square: sqrt((9 + 16) / 2) = 3.5355…
    residual = torch.tensor([[0.0, 0.0]]) if with_residual else None

    out = rms_norm_forward(Norm(weight), x, residual)

    expected = torch.tensor([[3.0 / 12.5**0.5, 8.0 / 12.5**0.5]])
    torch.testing.assert_close(out[0] if with_residual else out, expected)
    if with_residual:
        torch.testing.assert_close(out[1], x)
{% endif %}
