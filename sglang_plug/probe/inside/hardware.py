"""Which built-in hardware SGLang's detectors would find, from version files and driver libraries; torch only where that is not enough."""

from __future__ import annotations

import ctypes
import importlib.util
import os
import re
import sys

from . import metadata, spawning

TYPE_CHECKING = False  # typing costs more to import than all of this file
if TYPE_CHECKING:
    from typing import Any


QUICK_LIMIT, TORCH_LIMIT = 20.0, 120.0
FIELD = re.compile(r"^(__version__|cuda|hip|xpu|musa)\b[^=]*=\s*(None|'[^']*'|\"[^\"]*\")", re.MULTILINE)


def examine(request: dict[str, Any]) -> dict[str, Any]:
    """Return {"facts": {…}, "detectors": {name: {"present", "why", "exact"}}} for the detectors that the request names.

    Args:
        request: {"detectors": [name, …]}: the names of `core.policy`; {"cheap": True} never imports torch (then `present` is None where
            only torch could tell).
    """
    result = spawning.called("hardware:look", request["detectors"], QUICK_LIMIT)
    if result["value"] is None:
        why = "looking for the hardware's libraries ended with " + str(result["ended"])
        return {"facts": {}, "detectors": {name: {"present": None, "why": why, "exact": False} for name in request["detectors"]}}
    answer: dict[str, Any] = result["value"]
    open_names = [name for name, found in answer["detectors"].items() if found["present"] is None]
    if open_names and not request.get("cheap"):
        answer["detectors"].update(_ask_torch(open_names))
    return answer


def _ask_torch(names: list[str]) -> dict[str, Any]:
    result = spawning.called("hardware:ask_detectors", names, TORCH_LIMIT)
    if result["value"] is None:
        why = "importing torch ended with " + str(result["ended"]["kind"])
        return {name: {"present": None, "why": why, "exact": False} for name in names}
    return dict(result["value"])


def look(names: list[str], door: Any) -> Any:
    """Answer what version files and driver libraries tell, and None for the rest."""
    return door.perform(lambda note: _examine(names))


def ask_detectors(names: list[str], door: Any) -> Any:
    """Answer by torch."""
    return door.perform(lambda note: _by_torch(names))


def _examine(names: list[str]) -> dict[str, Any]:
    facts = _facts()
    found = {}
    for name in names:
        present, why = QUICK[name](facts)
        found[name] = {"present": present, "why": why, "exact": present is not None}
    return {"facts": facts, "detectors": found}


def _facts() -> dict[str, Any]:
    return {
        "system": sys.platform,
        "torch": _torch_build(),
        "autoload": metadata.torch_backends(),
        "torch_npu": _is_installed("torch_npu"),
        "torchada": _is_installed("torchada"),
        "torch_musa": _is_installed("torch_musa"),
        "amdsmi": _is_installed("amdsmi"),
        "pymtml": _is_installed("pymtml"),
        "libcuda": _has_library("libcuda.so.1"),
        "nvml": _nvml_devices(),
        "jetson": _detectors().is_jetson(),
    }


def _is_installed(name: str) -> bool:
    try:
        return importlib.util.find_spec(name) is not None
    except (ImportError, ValueError):
        return False


def _torch_build() -> dict[str, str | None] | None:
    """What torch's own version file says about its build; None where torch is not installed."""
    try:
        spec = importlib.util.find_spec("torch")
    except (ImportError, ValueError):
        return None
    if spec is None or not spec.origin:
        return None
    try:
        with open(os.path.join(os.path.dirname(spec.origin), "version.py"), encoding="utf-8", errors="replace") as file:
            text = file.read(1 << 16)
    except OSError:
        return {}
    return {match.group(1): None if match.group(2) == "None" else match.group(2)[1:-1] for match in FIELD.finditer(text)}


def _has_library(name: str) -> bool:
    try:
        ctypes.CDLL(name)
    except OSError:
        return False
    return True


def _detectors() -> Any:
    """The rules themselves, which the library shares: a file that stands alone."""
    path = os.path.join(os.path.dirname(os.path.abspath(__file__)), os.pardir, os.pardir, "core", "detect.py")
    name = (__package__ or "") + ".detect"
    if name not in sys.modules:
        spec: Any = importlib.util.spec_from_file_location(name, os.path.normpath(path))
        sys.modules[name] = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(sys.modules[name])
    return sys.modules[name]


def _nvml_devices() -> int | None:
    """The number of NVIDIA devices by NVML; None where NVML cannot be loaded or initialised."""
    try:
        count: int = _detectors().nvml_count()
    except (OSError, AttributeError):
        return None
    return count


# --- answers without torch --------------------------------------------------------------------------------------------------------


def _build(facts: dict[str, Any]) -> str:
    return "torch " + str(facts["torch"].get("__version__", "of unknown version"))


def _unbuilt(facts: dict[str, Any], field: str, label: str) -> tuple[bool | None, str]:
    """Absent, when torch was built without `field` and nothing changes torch when it is imported."""
    torch = facts["torch"]
    if torch is None:
        return False, "torch is not installed"
    if facts["autoload"]:
        return None, "torch loads " + ", ".join(facts["autoload"]) + " when it is imported"
    if field not in torch:
        return None, _build(facts) + " does not say in its version file"
    if torch[field] is None:
        return False, _build(facts) + " is built without " + label
    return None, _build(facts) + " is built with " + label + " " + str(torch[field])


def _torch_cuda(facts: dict[str, Any]) -> tuple[bool | None, str]:
    present, why = _unbuilt(facts, "cuda", "CUDA")
    if present is None and not facts["libcuda"] and not facts["autoload"] and not (facts["torch"] or {}).get("hip"):
        return False, why + ", but no NVIDIA driver is there (libcuda.so.1)"
    return present, why


def _torch_sail(facts: dict[str, Any]) -> tuple[bool | None, str]:
    cuda, why = _torch_cuda(facts)
    rocm, _ = _unbuilt(facts, "hip", "ROCm")
    return (False, why) if cuda is False and rocm is False else (None, why)


def _torch_npu(facts: dict[str, Any]) -> tuple[bool | None, str]:
    if facts["torch"] is None:
        return False, "torch is not installed"
    if facts["torch_npu"] or facts["autoload"]:
        return None, "torch_npu or another torch backend is installed"
    return False, "torch_npu is not installed"


def _torch_musa(facts: dict[str, Any]) -> tuple[bool | None, str]:
    if facts["torch"] is None:
        return False, "torch is not installed"
    if facts["torch_musa"] or facts["torchada"] or facts["autoload"]:
        return None, "torch_musa, torchada or another torch backend is installed"
    return False, "torch_musa and torchada are not installed"


def _torch_mps(facts: dict[str, Any]) -> tuple[bool | None, str]:
    if facts["system"] != "darwin":
        return False, "not macOS"
    return (False, "torch is not installed") if facts["torch"] is None else (None, "macOS")


def _nvml_only(facts: dict[str, Any]) -> tuple[bool | None, str]:
    if facts["nvml"] is not None:
        return facts["nvml"] > 0, "NVML reports " + str(facts["nvml"]) + " device(s)"
    if facts["jetson"]:
        return True, "no NVML, but this is a Jetson"
    return False, "NVML cannot be loaded (libnvidia-ml.so.1)"


def _nvml(facts: dict[str, Any]) -> tuple[bool | None, str]:
    present, why = _nvml_only(facts)
    if present or facts["nvml"] is not None:
        return present, why
    by_torch, more = _torch_cuda(facts)
    return by_torch, why + "; " + more


def _amdsmi(facts: dict[str, Any]) -> tuple[bool | None, str]:
    return (None, "amdsmi is installed") if facts["amdsmi"] else (False, "amdsmi is not installed")


def _mtml(facts: dict[str, Any]) -> tuple[bool | None, str]:
    return (None, "pymtml is installed") if facts["pymtml"] else (False, "pymtml is not installed")


QUICK = {
    "torch-cuda": _torch_cuda,
    "torch-sail": _torch_sail,
    "torch-rocm": lambda facts: _unbuilt(facts, "hip", "ROCm"),
    "torch-xpu": lambda facts: _unbuilt(facts, "xpu", "XPU"),
    "torch-xpu-devices": lambda facts: _unbuilt(facts, "xpu", "XPU"),
    "torch-npu": _torch_npu,
    "torch-npu-loose": _torch_npu,
    "torch-musa": _torch_musa,
    "torch-mps": _torch_mps,
    "torch-mps-backend": _torch_mps,
    "nvml": _nvml,
    "nvml-only": _nvml_only,
    "amdsmi": _amdsmi,
    "mtml": _mtml,
}


# --- answers that need the vendor's modules ---------------------------------------------------------------------------------------


def _by_torch(names: list[str]) -> dict[str, Any]:
    found = {}
    for name in names:
        try:
            present, why = _detectors().PROBES[name]()
        except Exception as exc:  # a detector that raises finds nothing, and says what
            present, why = False, "its detector raises " + type(exc).__name__ + ": " + str(exc)
        found[name] = {"present": bool(present), "why": why, "exact": True}
    return found
