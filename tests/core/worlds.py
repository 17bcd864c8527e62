"""A runtime over fake distributions on disk and a fake engine of a few classes, for tests of selection and loading."""

from __future__ import annotations

import contextlib
import importlib
import sys
import textwrap
import types
from enum import Enum
from typing import TYPE_CHECKING, Any

from sglang_plug.core import environ
from sglang_plug.core.hooktypes import HookSource, HookType
from sglang_plug.core.policy import Policy, policy
from sglang_plug.core.runtime import Runtime
from sglang_plug.core.selection import Detection

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from tests.plugins.install import Site

ENGINE = "fake_engine"
SELECTORS = {"srt": environ.PLATFORM, "diffusion": environ.DIFFUSION_PLATFORM}


class PlatformEnum(Enum):
    OOT = "oot"
    UNSPECIFIED = "unspecified"


class Platform:
    _enum = PlatformEnum.UNSPECIFIED
    device_name = "unknown"
    device_type = "cpu"
    starts = 0

    def init_backend(self) -> None:
        type(self).starts += 1


def engine() -> types.ModuleType:
    """Return a module with a base class, an enum and one class per built-in."""
    made = types.ModuleType(ENGINE)
    made.Platform = made.SRTPlatform = Platform
    made.PlatformEnum = PlatformEnum
    for name in ("cpu", "cuda", "rocm", "xpu", "mps", "npu", "musa", "sail"):
        setattr(made, name.capitalize(), type(name.capitalize(), (Platform,), {"device_name": name}))
    return made


def over_fakes(rules: Policy) -> Policy:
    """Return the policy with the fake engine's classes in place of SGLang's."""
    builtins = tuple(entry._replace(qualname=f"{ENGINE}.{entry.name.capitalize()}") for entry in rules.builtins)
    return rules._replace(
        builtins=builtins,
        base=rules.base and rules.base._replace(qualname=f"{ENGINE}.Platform"),
        platform_class=f"{ENGINE}.Platform",
        oot_enum=rules.oot_enum and f"{ENGINE}.PlatformEnum.OOT",
    )


PLATFORMS = """
from fake_engine import Platform, PlatformEnum
class A(Platform):
    _enum = PlatformEnum.OOT
    device_name = device_type = "dev"
class NoEnum(Platform):
    device_name = device_type = "dev"
class NoName(A):
    device_name = ""
class NoType(A):
    device_type = " "
class NeedsArg(A):
    def __init__(self, x): pass
class BadInit(A):
    def init_backend(self): raise OSError("no hw")
class NotPlat: pass
"""


def plugin(site: Site, dist: str, module: str, entries: Mapping[str, Mapping[str, str]], body: str) -> None:
    """Install `dist` with a package `module`; its callbacks are in `body`, its platforms are the usual ones."""
    head = "import sys\ncalls = sys.modules['fake_engine'].__dict__.setdefault('calls', [])\ncalls.append('import ' + __name__)\n"
    files = {
        f"{module}/__init__.py": head + textwrap.dedent(body),
        f"{module}/plat.py": PLATFORMS,
        f"{module}/broken.py": "import no_such_module_xyz",
    }
    site.add(dist, entries, files)


@contextlib.contextmanager
def running(
    runtime: str, sites: Sequence[Site], env: Mapping[str, str], present: tuple[str, ...] = (), release: str | None = None
) -> Iterator[Runtime]:
    """Yield a runtime in a world of these distributions, variables and devices; everything is put back afterwards."""
    made = Runtime(over_fakes(policy(runtime, release)))
    made.settings = lambda: environ.read(env)
    made.detect = lambda name: Detection(name in present or made.policy.builtin(name).detector == "always", "said so")
    before = set(sys.modules)
    sys.modules[ENGINE] = fake = engine()
    fake.runtime, fake.hooks, fake.HookType, fake.HookSource = made, made.hooks, HookType, HookSource
    folders = [str(site.root) for site in sites]
    sys.path[:0] = folders
    importlib.invalidate_caches()
    try:
        yield made
    finally:
        made.hooks.revert()
        del sys.path[: len(folders)]
        for name in set(sys.modules) - before:
            del sys.modules[name]


def calls() -> list[str]:
    """Return what the plugins of this world wrote down."""
    return list(sys.modules[ENGINE].__dict__.get("calls", []))


def outcome(action: Any) -> str:
    """Return what `action` returns or raises, in words."""
    try:
        return str(action())
    except BaseException as error:
        for kind in type(error).__mro__:  # the built-in type that callers catch
            if kind.__module__ == "builtins":
                return f"{kind.__name__}: {error}"
        raise
