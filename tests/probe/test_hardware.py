"""Built-in hardware is told from version files and driver libraries; torch is imported only where they cannot tell."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from sglang_plug.probe.parent import Probe
    from tests.plugins.install import Site

POISON = "raise SystemExit('torch was imported')\n"


def torch(site: Site, version: str, init: str = POISON) -> None:
    site.write({"torch/__init__.py": init, "torch/version.py": version})


def examine(probe: Probe, *names: str, cheap: bool = False) -> dict[str, Any]:
    found: dict[str, Any] = probe.require({"op": "hardware", "detectors": list(names), "cheap": cheap}, timeout=60)["detectors"]
    return found


@pytest.mark.parametrize(
    ("detector", "why"),
    [
        ("torch-cuda", "built without CUDA"),
        ("torch-sail", "built without CUDA"),
        ("torch-rocm", "built without ROCm"),
        ("torch-xpu", "built without XPU"),
        ("torch-npu", "torch_npu is not installed"),
        ("torch-musa", "torch_musa and torchada are not installed"),
        ("torch-mps", "not macOS"),
        ("amdsmi", "amdsmi is not installed"),
        ("mtml", "pymtml is not installed"),
    ],
)
def test_a_cpu_build_of_torch_answers_from_its_version_file(probe: Probe, site: Site, detector: str, why: str) -> None:
    torch(
        site,
        """
            from typing import Optional
            __version__ = '2.13.0+cpu'
            cuda: Optional[str] = None
            hip: Optional[str] = None
            xpu: Optional[str] = None
        """,
    )
    found = examine(probe, detector)[detector]
    assert (found["present"], found["exact"]) == (False, True)
    assert why in found["why"]


def test_a_build_that_could_needs_torch_itself(probe: Probe, site: Site) -> None:
    init = "class xpu:\n    is_available = staticmethod(lambda: True)\n    device_count = staticmethod(lambda: 2)\n"
    torch(site, "__version__ = '2.13.0+xpu'\ncuda = None\nhip = None\nxpu = '20250101'\n", init)
    assert examine(probe, "torch-xpu", cheap=True)["torch-xpu"]["present"] is None
    assert examine(probe, "torch-xpu")["torch-xpu"]["present"] is True


def test_each_runtime_keeps_its_own_rule(probe: Probe, site: Site) -> None:
    """SRT takes Intel's hardware for present when torch.xpu says so; diffusion also counts the devices."""
    init = "class xpu:\n    is_available = staticmethod(lambda: True)\n    device_count = staticmethod(lambda: 0)\n"
    torch(site, "__version__ = '2.13.0+xpu'\ncuda = None\nhip = None\nxpu = '20250101'\n", init)
    found = examine(probe, "torch-xpu", "torch-xpu-devices")
    assert {name: facts["present"] for name, facts in found.items()} == {"torch-xpu": True, "torch-xpu-devices": False}


def test_an_old_version_file_is_not_taken_for_a_no(probe: Probe, site: Site) -> None:
    torch(site, "__version__ = '2.3.0'\ncuda = None\nhip = None\n", "class xpu:\n    is_available = staticmethod(lambda: False)\n")
    assert examine(probe, "torch-xpu", cheap=True)["torch-xpu"]["present"] is None
    assert examine(probe, "torch-xpu")["torch-xpu"]["present"] is False


def test_a_backend_that_torch_loads_makes_every_shortcut_doubtful(probe: Probe, site: Site) -> None:
    torch(site, "__version__ = '2.13.0+cpu'\ncuda = None\nhip = None\nxpu = None\n")
    site.add("torch-vendor", {"torch.backends": {"vendor": "vendor:autoload"}})
    found = examine(probe, "torch-cuda", cheap=True)["torch-cuda"]
    assert found["present"] is None
    assert "vendor" in found["why"]


def test_rocm_reports_its_device_and_is_not_cuda(probe: Probe, site: Site) -> None:
    init = """
        class version:
            hip = '6.4'
        class cuda:
            is_available = staticmethod(lambda: True)
            get_device_name = staticmethod(lambda: 'MI300X')
    """
    torch(site, "__version__ = '2.13.0+rocm'\ncuda = None\nhip = '6.4'\nxpu = None\n", init)
    found = examine(probe, "torch-cuda", "torch-rocm", "torch-sail")
    assert {name: facts["present"] for name, facts in found.items()} == {"torch-cuda": False, "torch-rocm": True, "torch-sail": False}


def test_a_torch_that_crashes_is_a_fact(probe: Probe, site: Site) -> None:
    torch(site, "__version__ = '2.13.0+xpu'\ncuda = None\nhip = None\nxpu = '1'\n", "import os\nos.abort()\n")
    found = examine(probe, "torch-xpu")["torch-xpu"]
    assert (found["present"], found["exact"]) == (None, False)


def test_no_torch_at_all(probe: Probe, site: Site) -> None:
    site.write(
        {
            "sitecustomize.py": """
                import sys
                class Hide:
                    def find_spec(self, name, path=None, target=None):
                        if name == 'torch':
                            raise ModuleNotFoundError(name)
                sys.meta_path.insert(0, Hide())
            """
        }
    )
    with type(probe)(probe.environment) as fresh:
        assert examine(fresh, "torch-cuda")["torch-cuda"] == {"present": False, "why": "torch is not installed", "exact": True}
