"""A platform package made from answers: the template's values, and nothing of the disk."""

from __future__ import annotations

from importlib import metadata
from typing import TYPE_CHECKING, Any, Final

from sglang_plug.contract import catalogue
from sglang_plug.errors import ScaffoldError
from sglang_plug.scaffold.answers import PlatformAnswers, version_key
from sglang_plug.scaffold.render import render
from sglang_plug.scaffold.status import Statuses

if TYPE_CHECKING:
    from collections.abc import Mapping

FIRST_WITH: Final = {"srt": "0.5.11", "diffusion": "0.5.21"}
KNOWN_TO_TORCH: Final = frozenset({"cpu", "cuda", "xpu", "mps", "mtia"})


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
        if version_key(answers.release) < version_key(FIRST_WITH[runtime]):
            raise ScaffoldError(
                f"this release takes no {runtime} platforms",
                subject=f"SGLang {answers.release}",
                cause=f"they exist from {FIRST_WITH[runtime]} on",
                hint=f"`--sglang {FIRST_WITH[runtime]}` or later" + (", or `--runtime srt`" if runtime == "diffusion" else ""),
            )
        status[runtime] = Statuses(release.platform_contract(runtime))
    return {
        "distribution": answers.name.distribution,
        "package": answers.name.package,
        "prefix": answers.name.prefix,
        "srt": answers.srt,
        "diffusion": answers.diffusion,
        "hooks": answers.hooks,
        "device_type": answers.device_type,
        "torch_extension": "" if answers.device_type in KNOWN_TO_TORCH else f"torch_{answers.device_type}",
        "release": answers.release,
        "before_0_5_22": version_key(answers.release) < (0, 5, 22),
        "status": status.get("srt", {}),
        "diffusion_status": status.get("diffusion", {}),
    }


def release_for(asked: str | None) -> tuple[str, str | None]:
    """Return the release whose contract is used, and a note where it is not the one that was asked for or is installed.

    Args:
        asked: what `--sglang` said; None takes the installed release, else the newest known.

    Raises:
        ScaffoldError: the catalogue does not know the release that was asked for.
    """
    known = catalogue.releases()
    newest = max(known, key=version_key)
    if asked is not None:
        release = asked.strip().removeprefix("v")
        if release in known:
            return release, None
        raise ScaffoldError(
            "this SGLang release is not in the catalogue",
            subject=asked,
            cause=f"known are {', '.join(sorted(known, key=version_key))}",
            hint=f"`--sglang {newest}`, or teach the catalogue with `sglang-plug contract build`",
        )
    try:
        here = metadata.version("sglang")
    except metadata.PackageNotFoundError:
        return newest, None
    if here in known:
        return here, None
    return newest, f"SGLang {here} is installed, and its contract is not known: the one of {newest} is used"
