"""What the user answered, judged. A name is judged here and nowhere else; nothing here reads or writes a file."""

from __future__ import annotations

import keyword
import re
import sys
import unicodedata
from dataclasses import dataclass
from typing import Final

from sglang_plug.errors import ScaffoldError

MAX_NAME: Final = 40
RESERVED_BY_DIFFUSION: Final = frozenset({"cpu", "cuda", "rocm", "xpu", "mps", "npu", "musa"})  # S4.1
SHADOWED: Final = {
    "SGLang": {"sglang", "sglang_plug", "sgl_kernel", "sglang_router", "sgl_diffusion"},
    "PyTorch": {"torch", "torchvision", "torchaudio", "torchao", "triton", "functorch", "torchgen"},
    "a library that SGLang imports": {
        "aiohttp", "anthropic", "cloudpickle", "compressed_tensors", "cuda_tile", "cutlass", "diffusers", "dill", "einops", "fastapi",
        "flash_attn", "flashinfer", "gguf", "google", "grpc", "httpx", "huggingface_hub", "imageio", "jinja2", "jsonschema", "llguidance",
        "modelscope", "msgspec", "numpy", "openai", "orjson", "outlines", "packaging", "pil", "prometheus_client", "psutil", "pydantic",
        "ray", "requests", "safetensors", "scipy", "sentencepiece", "setproctitle", "starlette", "tiktoken", "timm", "tokenizers", "tqdm",
        "transformers", "uvicorn", "uvloop", "vllm", "xgrammar", "yaml", "zmq",
    },
    "a tool that builds or tests the project": {"build", "mypy", "pip", "pkg_resources", "pytest", "ruff", "setuptools", "wheel"},
    "a folder of the project itself": {"tests", "dist", "docs", "src"},
    "a plugin name that SGLang keeps for itself": {"nvidia_megakernel"},
}  # fmt: skip
NO_DEVICE: Final = {
    "meta": ("cpu", "tensors on meta hold no data"),
    "hip": ("cuda", "torch calls ROCm's devices cuda"),
    "privateuse1": ("privateuseone", "torch calls the key PrivateUse1 privateuseone, until an extension renames it"),
}
KINDS: Final = {"new-platform": "device", "new-hook": "hooks"}  # what each command makes, as the end of a name
_SEPARATORS = re.compile(r"[-_.]+")


@dataclass(frozen=True)
class Name:
    """A name that was found good, in the forms that a package needs.

    Attributes:
        distribution: the project's name, as `pip install` takes it (PEP 503 form).
        package: the module, which is also the entry point's name and the device's.
        prefix: the start of class names.
    """

    distribution: str
    package: str
    prefix: str


def judge_name(text: str, *, command: str = "new-platform") -> Name:
    """Return `text` as a distribution, a module and a class prefix.

    Raises:
        ScaffoldError: the name cannot serve; says why, and proposes one that can.
    """
    reason = _reason_against(text)
    if reason is None:
        distribution = _SEPARATORS.sub("-", text).lower()
        package = distribution.replace("-", "_")
        reason = _reason_against_module(package)
        if reason is None:
            return Name(distribution, package, "".join(part.capitalize() for part in distribution.split("-")))
    raise ScaffoldError(
        "this name cannot be a plugin package",
        subject=text[: MAX_NAME + 16],
        cause=reason,
        hint=f"`sglang-plug {command} {propose(text, command=command)}` would do",
    )


def propose(text: str, *, command: str = "new-platform") -> str:
    """Return a name close to `text` that `judge_name` accepts."""
    kind = KINDS[command]
    plain = unicodedata.normalize("NFKD", text).encode("ascii", "ignore").decode()
    words = re.findall(r"[A-Za-z0-9]+", plain.replace("\\", "/").rsplit("/", 1)[-1] if "/" in plain.strip("/\\") else plain)
    candidate = "-".join(words).lower()[: MAX_NAME - len("-device")].strip("-")
    if not candidate:
        return f"my-{kind}"
    if candidate[0].isdigit():
        candidate = f"dev-{candidate}"[: MAX_NAME - len("-device")].strip("-")
    if _reason_against_module(candidate.replace("-", "_")):
        candidate = f"{candidate}-{kind}"
    return candidate


def judge_device_type(text: str) -> str:
    """Return `text` as a torch device type.

    Raises:
        ScaffoldError: torch could not take it.
    """
    if text in NO_DEVICE:
        instead, cause = NO_DEVICE[text]
        hint = f"`--device-type {instead}`, or the name that your torch extension gives the device"
        raise ScaffoldError("no device has this torch device type", subject=text, cause=cause, hint=hint)
    if re.fullmatch(r"[a-z][a-z0-9_]{0,31}", text) and not keyword.iskeyword(text):
        return text
    plain = re.sub(r"[^a-z0-9_]", "", text.split(":", 1)[0].lower()).lstrip("0123456789_")[:32]
    raise ScaffoldError(
        "this cannot be a torch device type",
        subject=text[:48],
        cause="a device type is a lower-case identifier of at most 32 letters, digits and underscores, without an index",
        hint=f"`--device-type {plain if plain and not keyword.iskeyword(plain) else 'cpu'}`",
    )


def _reason_against(text: str) -> str | None:
    """Why the raw text cannot be a distribution name, or None."""
    if not text.strip():
        return "it is empty"
    if len(text) > MAX_NAME:
        return f"it is {len(text)} characters long; beyond {MAX_NAME}, class names and import lines no longer fit a line"
    if "/" in text or "\\" in text:
        return "it holds a path separator; the folder is chosen with --output"
    if not text.isascii():
        return "it holds characters outside ASCII, which a distribution's name cannot (PEP 508)"
    if text[0].isdigit():
        return "it starts with a digit, and a Python module cannot"
    odd = sorted({char for char in text if not (char.isalnum() or char in "-_.")})
    if odd:
        return f"it holds {', '.join(map(repr, odd))}; only letters, digits, '-', '_' and '.' are allowed (PEP 508)"
    if not (text[0].isalpha() and text[-1].isalnum()):
        return "it must start with a letter and end with a letter or digit"
    return None


def _reason_against_module(package: str) -> str | None:
    """Why the module name cannot be imported safely, or None."""
    if keyword.iskeyword(package):
        return f"`{package}` is a Python keyword: `import {package}` is a syntax error"
    if package in RESERVED_BY_DIFFUSION:
        return f"`{package}` names a built-in platform of SGLang Diffusion, which refuses to start when a plugin takes it"
    if package in sys.stdlib_module_names or package == "test":
        return f"`import {package}` means the standard library's module"
    if re.fullmatch(r"torch_(?!device$)[a-z0-9]+", package):
        return f"`{package}` is how torch's extensions are called, and the platform imports its device's"
    for owner, names in SHADOWED.items():
        if package in names:
            return f"`{package}` would shadow {owner}"
    return None


@dataclass(frozen=True)
class PlatformAnswers:
    """Everything that the platform template asks, each answer already judged.

    Attributes:
        name: the package's names.
        srt: generate an SRT platform.
        diffusion: generate a diffusion platform.
        device_type: the torch device type.
        hooks: generate a hook plugin too.
        release: the SGLang release whose contract the comments tell.
    """

    name: Name
    srt: bool
    diffusion: bool
    device_type: str
    hooks: bool
    release: str


def version_key(release: str) -> tuple[int, ...]:
    """Return a release as numbers to compare (`0.5.12.post1` follows `0.5.12`)."""
    return tuple(int(number) for number in re.findall(r"\d+", release))


def judge_module(text: str) -> str:
    """Return `text` as the name of a module inside a package.

    Raises:
        ScaffoldError: it cannot be imported; proposes one that can.
    """
    name = _SEPARATORS.sub("_", text).lower()
    if re.fullmatch(r"[a-z_][a-z0-9_]*", name) and not keyword.iskeyword(name) and len(name) <= MAX_NAME and text.isascii():
        return name
    raise ScaffoldError(
        "this name cannot be a module",
        subject=text[: MAX_NAME + 16],
        cause=_reason_against(text) or f"`import {name}` is a syntax error",
        hint=f"`{propose(text).replace('-', '_')}` would do",
    )
