"""Which `sglang` the tests run on: the installed one, or the stand-in. Owns how it gets onto the path, here and in children."""

from __future__ import annotations

import contextlib
import importlib
import os
import re
import sys
from typing import TYPE_CHECKING

from sglang_plug import standin
from sglang_plug.core.policy import DIFFUSION, SRT
from sglang_plug.errors import UsageError
from sglang_plug.standin import finder

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from sglang_plug.contract.catalogue import Release
    from sglang_plug.core.policy import Policy

POLICIES = {"srt": SRT, "diffusion": DIFFUSION}


def policy(runtime: str) -> Policy:
    """Return the policy of `srt` or `diffusion`.

    Raises:
        UsageError: another name.
    """
    try:
        return POLICIES[runtime]
    except KeyError:
        raise UsageError(f"no such runtime: {runtime!r}", hint='write runtime = "srt" or runtime = "diffusion"') from None


def is_real() -> bool:
    """Tell whether SGLang itself is installed here."""
    return finder.elsewhere() is not None


def prepare() -> None:
    """Make `import sglang` work, and import it while no plugin can be chosen: importing it resolves the platform, for good.

    A plugin under test must not be imported before SGLang is whole, and must not be the one that SGLang bound its modules to.
    """
    finder.install()
    if "sglang" not in sys.modules:
        with _without_plugins():
            importlib.import_module("sglang")


def release() -> str:
    """Return the release that the tests run against; the stand-in counts as the release that it mirrors."""
    prepare()
    version = str(importlib.import_module("sglang").__version__)
    return version.partition("+")[0]


def contract() -> Release:
    """Return the catalogue's page of the release, or of the newest known one before it."""
    from sglang_plug.contract import catalogue

    here = _key(release())
    known = sorted(catalogue.releases(), key=_key)
    fitting = [candidate for candidate in known if _key(candidate) <= here]
    return catalogue.load((fitting or known)[-1])


def child_environment(changes: Mapping[str, str | None] | None = None) -> dict[str, str]:
    """Return the variables with which a child sees what this process sees: its `sys.path`, and the stand-in where it is in use."""
    env = dict(os.environ)
    env["PYTHONPATH"] = os.pathsep.join(place for place in sys.path if place and os.path.exists(place))
    if not is_real():
        env = standin.environment(env)
    for name, value in (changes or {}).items():
        env.pop(name, None)
        if value is not None:
            env[name] = value
    return env


@contextlib.contextmanager
def _without_plugins() -> Iterator[None]:
    """No selector, and an allowlist that allows nothing."""
    names = [SRT.selector, DIFFUSION.selector, SRT.allowlist]
    names += [name.replace("SGLANG_", "SGL_", 1) for name in names if name]
    before = {name: os.environ.pop(name) for name in names if name and name in os.environ}
    os.environ[SRT.allowlist] = ","
    try:
        yield
    finally:
        del os.environ[SRT.allowlist]
        os.environ.update(before)


def _key(version: str) -> tuple[int, ...]:
    return tuple(int(number) for number in re.findall(r"\d+", version))
