"""A platform package made from answers: the template's values, and nothing of the disk."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from sglang_plug.contract import catalogue
from sglang_plug.core.policy import policy
from sglang_plug.errors import ScaffoldError
from sglang_plug.scaffold.answers import PlatformAnswers, version_key
from sglang_plug.scaffold.render import render
from sglang_plug.scaffold.status import Statuses

if TYPE_CHECKING:
    from collections.abc import Mapping

KNOWN_TO_TORCH: Final = frozenset({"cpu", "cuda", "xpu", "mps", "mtia"})


def extension_of(device_type: str) -> str:
    """Return the module that brings torch a device; empty where torch has it."""
    return "" if device_type in KNOWN_TO_TORCH else f"torch_{device_type}"


def files(answers: PlatformAnswers) -> dict[str, str]:
    """Return the package's files, path to text.

    Raises:
        ScaffoldError: the release has no such platforms.
    """
    return render("platform", values(answers))


def values(answers: PlatformAnswers) -> dict[str, Any]:
    """Return what the template is given.

    Raises:
        ScaffoldError: the release has no platforms of a runtime that was asked for.
    """
    wanted = {"srt": answers.srt, "diffusion": answers.diffusion}
    release = catalogue.load(answers.release)
    status: dict[str, Mapping[str, str]] = {}
    for runtime in (runtime for runtime, on in wanted.items() if on):
        contract = release.platform_contract(runtime)
        if contract is None or not _takes(runtime, answers.release):
            first = _first_with(runtime)
            raise ScaffoldError(
                f"this release takes no {runtime} platforms",
                subject=f"SGLang {answers.release}",
                cause=f"they exist from {first} on",
                hint=f"`--sglang {first}` or later" + (", or `--runtime srt`" if runtime == "diffusion" else ""),
            )
        status[runtime] = Statuses(contract)
    return {
        "distribution": answers.name.distribution,
        "package": answers.name.package,
        "prefix": answers.name.prefix,
        "srt": answers.srt,
        "diffusion": answers.diffusion,
        "hooks": answers.hooks,
        "device_type": answers.device_type,
        "torch_extension": extension_of(answers.device_type),
        "release": answers.release,
        "before_0_5_22": version_key(answers.release) < (0, 5, 22),
        "status": status.get("srt", {}),
        "diffusion_status": status.get("diffusion", {}),
    }


def _takes(runtime: str, release: str) -> bool:
    """Tell whether the release reads entry points of platforms for the runtime."""
    return policy(runtime, release).platform_group is not None


def _first_with(runtime: str) -> str:
    return next(release for release in catalogue.releases() if _takes(runtime, release))
