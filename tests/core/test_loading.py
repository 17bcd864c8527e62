"""Every executed case of loading: which plugins run, whose hooks count, and whose failure ends startup (S5, S6)."""

from __future__ import annotations

import contextlib
import logging
import sys
import types
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import pytest

from sglang_plug.core.hooktypes import HookSource
from tests.core.worlds import PLATFORMS, SELECTORS, outcome, plugin, running
from tests.plugins.install import DIFFUSION_PLATFORMS, DIFFUSION_PLUGINS, SRT_PLATFORMS, SRT_PLUGINS, Site

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from sglang_plug.core.runtime import Runtime

GROUPS = {"srt": (SRT_PLATFORMS, SRT_PLUGINS), "diffusion": (DIFFUSION_PLATFORMS, DIFFUSION_PLUGINS)}
HOOK = "hooks.register('tgt.f', lambda: 'hooked', HookType.REPLACE)"
HOOK_G = "hooks.register('tgt.g', lambda: 'B', HookType.REPLACE)"


@dataclass(frozen=True)
class Dist:
    """One distribution: its name, hook plugins (name -> body of the callback), platforms (name -> what activate() does), which
    live in a module `apart` from the hooks where that matters."""

    name: str
    plugins: dict[str, str] = field(default_factory=dict)
    platforms: dict[str, str] = field(default_factory=dict)
    at_import: str = ""
    attribute: str | None = None
    apart: bool = False


class Log(logging.Handler):
    def __init__(self) -> None:
        super().__init__()
        self.lines: list[str] = []

    def emit(self, record: logging.LogRecord) -> None:
        self.lines.append(f"{record.levelname} {record.getMessage()}")
        if record.exc_info and record.exc_info[0]:
            self.lines.append(f"{record.exc_info[0].__name__}: {record.exc_info[1]}")


@contextlib.contextmanager
def loading(runtime: str, tmp_path: Path, *dists: Dist, **variables: str) -> Iterator[tuple[Runtime, types.ModuleType, Log]]:
    """Yield a runtime with these distributions installed, the module that their hooks target, and what is logged."""
    platforms, plugins = GROUPS[runtime]
    sites = []
    for index, dist in enumerate(dists):
        sites.append(Site(tmp_path / f"site{index}"))
        body = "from fake_engine import hooks, HookType, HookSource, runtime\n" + dist.at_import + "\n"
        for number, text in enumerate(dist.plugins.values()):
            body += f"def register{number}():\n    calls.append('run')\n    {text}\n"
        activation = "".join(f"def activate{number}(): {text}\n" for number, text in enumerate(dist.platforms.values()))
        module = f"mod{index}"
        if dist.apart:
            sites[-1].write({f"mod{index}_apart.py": PLATFORMS + activation})
        else:
            body += activation
        entries = {
            plugins: {name: f"{module}:{dist.attribute or f'register{number}'}" for number, name in enumerate(dist.plugins)},
            platforms: {name: f"{module}{'_apart' * dist.apart}:activate{number}" for number, name in enumerate(dist.platforms)},
        }
        plugin(sites[-1], dist.name, module, entries, body)
    env = {"SGLANG_PLUGINS" if key == "plugins" else SELECTORS[runtime]: value for key, value in variables.items()}
    log = Log()
    logger = logging.getLogger("sglang")
    logger.addHandler(log)
    logger.setLevel(logging.INFO)
    logger.propagate = False
    target = types.ModuleType("tgt")
    exec("def f(): return 'orig'\ndef g(): return 'orig'\nclass K: pass", target.__dict__)
    try:
        with running(runtime, sites, env) as made:
            sys.modules["tgt"] = target
            yield made, target, log
    finally:
        logger.removeHandler(log)
        logger.propagate = True
        logger.setLevel(logging.NOTSET)


def sources(runtime: Runtime) -> list[Any]:
    return [hook.source for hooks in runtime.hooks.hooks.values() for hook in hooks]


ACTIVE = "return 'mod0.plat.A'"


# -- SRT: one phase


@pytest.mark.parametrize(
    ("dists", "variables", "f", "g", "log"),
    [
        pytest.param((Dist("a", {"p": HOOK}),), {}, "hooked", "orig", [], id="plain"),
        pytest.param(
            (Dist("a", {"p": HOOK + "; raise OSError('x')"}),),
            {},
            "hooked",
            "orig",
            ["ERROR Failed to execute general plugin: p", "OSError: x"],
            id="registers then raises: what it registered stays",
        ),
        pytest.param(
            (Dist("a", {"p": ""}, attribute="N", at_import="N = 3"),),
            {},
            "orig",
            "orig",
            ["ERROR Failed to execute general plugin: p", "TypeError: 'int' object is not callable"],
            id="not callable",
        ),
        pytest.param(
            (Dist("a", {"p": HOOK}, at_import="import no_such_q"), Dist("b", {"p2": HOOK})),
            {},
            "hooked",
            "orig",
            ["ERROR Failed to load plugin p from group sglang.srt.plugins", "ModuleNotFoundError: No module named 'no_such_q'"],
            id="import error: logged, others go on",
        ),
        pytest.param((Dist("a", {"p": HOOK}), Dist("b", {"p": HOOK_G})), {}, "orig", "B", [], id="of equal names the last wins"),
        pytest.param(
            (Dist("a", {"p": HOOK}, {"sel": ACTIVE}), Dist("b", {"p2": HOOK_G}, {"other": ACTIVE})),
            {"selector": "sel"},
            "hooked",
            "orig",
            ["INFO Skipping plugin p2 (dist b)"],
            id="hooks of a platform that is not selected are skipped",
        ),
        pytest.param(
            (Dist("a", {"p": HOOK}, {"sel": ACTIVE, "two": ACTIVE}),),
            {"selector": "sel"},
            "hooked",
            "orig",
            [],
            id="a distribution with a second platform keeps its own hooks (the releases lose them)",
        ),
        pytest.param((Dist("a", {"p": HOOK}, {"off": "return None"}),), {}, "hooked", "orig", [], id="inactive platform, no selector"),
        pytest.param(
            (Dist("a", {"p": HOOK}, {"sel": ACTIVE}),),
            {"selector": "typo"},
            "orig",
            "orig",
            ["INFO Skipping plugin p (dist a)"],
            id="a selector that names nothing excludes every platform's hooks",
        ),
        pytest.param(
            (Dist("a", {"p": HOOK, "p2": HOOK_G}),),
            {"plugins": " p2 , "},
            "orig",
            "B",
            ["INFO Skipping plugin p (dist a): not in SGLANG_PLUGINS"],
            id="allowlist with spaces",
        ),
        pytest.param(
            (Dist("a", {"p": HOOK}),), {"plugins": "P"}, "orig", "orig", ["INFO Skipping plugin p (dist a)"], id="allowlist heeds case"
        ),
        pytest.param(
            (Dist("a", {"p": HOOK}),), {"plugins": ","}, "orig", "orig", ["INFO Skipping plugin p (dist a)"], id="empty allowlist"
        ),
        pytest.param(
            (Dist("a", {"p": "runtime.load_plugins(); " + HOOK}),), {}, "hooked", "orig", [], id="a call from inside returns at once"
        ),
    ],
)
def test_srt(dists: tuple[Dist, ...], variables: dict[str, str], f: str, g: str, log: list[str], tmp_path: Path):
    with loading("srt", tmp_path, *dists, **variables) as (runtime, target, seen):
        runtime.load_plugins()
        runtime.load_plugins()
        assert (target.f(), target.g()) == (f, g)
        told = [line for line in seen.lines if not line.startswith("INFO") or "Skipping" in line]
        assert len(told) == len(log)
        assert all(line.startswith(begin) for line, begin in zip(told, log, strict=True)), told


def test_srt_names_the_source_during_the_callback_only(tmp_path: Path):
    deco = "hooks.decorator('tgt.g')(lambda result: 'deco')"
    with loading("srt", tmp_path, Dist("a", {"p": HOOK}, at_import=deco)) as (runtime, target, _):
        runtime.load_plugins()
        assert target.g() == "deco"
        assert sources(runtime) == [None, HookSource("p", "a")]


def test_srt_system_exit_ends_the_process(tmp_path: Path):
    with loading("srt", tmp_path, Dist("a", {"p": "raise SystemExit(3)"})) as (runtime, _, _log):
        assert outcome(runtime.load_plugins) == "SystemExit: 3"
        assert outcome(runtime.load_plugins) == "RuntimeError: SRT plugin registration previously failed: 3"


def test_srt_applies_what_others_registered_before_and_nothing_after(tmp_path: Path):
    with loading("srt", tmp_path) as (runtime, target, _):
        runtime.hooks.register("tgt.f", lambda result: "early")
        runtime.load_plugins()
        runtime.hooks.register("tgt.g", lambda result: "late")
        runtime.load_plugins()
        assert (target.f(), target.g()) == ("early", "orig")


def test_srt_imports_the_shadowed_plugin_without_running_it(tmp_path: Path):
    with loading("srt", tmp_path, Dist("a", {"p": HOOK}), Dist("b", {"p": HOOK_G})) as (runtime, _, _log):
        runtime.load_plugins()
        from tests.core.worlds import calls

        assert calls() == ["import mod0", "import mod1", "run"]


def test_the_releases_exclude_a_two_platform_distribution_from_its_own_hooks(tmp_path: Path):
    from sglang_plug.core.policy import policy

    with loading("srt", tmp_path, Dist("a", {"p": HOOK}, {"sel": ACTIVE, "two": ACTIVE}), selector="sel") as (runtime, target, _):
        runtime.policy = policy("srt", "0.5.23")
        runtime.load_plugins()
        assert target.f() == "orig"


# -- diffusion: two phases

NOPE = "hooks.register('nope_mod.f', lambda: 'x', HookType.REPLACE)"
REG, APP = "RuntimeError: Diffusion plugin registration previously failed: ", "RuntimeError: Diffusion hook application previously failed: "
COULD_NOT = "Selected platform package 'a' could not apply hooks on: {}"
OWN = {"sel": ACTIVE}


def story(*steps: str) -> tuple[str, str, str]:
    """Return the three steps load, apply, apply; a missing one repeats the last."""
    return (*steps, *[steps[-1]] * (3 - len(steps)))  # type: ignore[return-value]


@pytest.mark.parametrize(
    ("dists", "variables", "steps", "log"),
    [
        pytest.param((Dist("a", {"p": HOOK}),), {}, story("orig/orig", "hooked/orig"), [], id="third party, built-in platform"),
        pytest.param((Dist("a", {"p": HOOK}, OWN),), {}, story("orig/orig", "hooked/orig"), [], id="the selected platform's own"),
        pytest.param(
            (Dist("a", {"p": HOOK}, {"off": "return None"}),),
            {},
            story("orig/orig"),
            ["INFO Skipping plugin p (dist a): its distribution provides a platform that is not the selected one"],
            id="of an inactive platform: skipped",
        ),
        pytest.param((Dist("a", {"p": "raise OSError('x')"}, OWN),), {}, story("OSError: x", REG + "x"), [], id="required: raises"),
        pytest.param(
            (Dist("a", {"p": HOOK}, attribute="mod1"), Dist("c", {}, OWN)),
            {},
            story("orig/orig"),
            ["ERROR Failed to load plugin p from group sglang.multimodal_gen.plugins", "AttributeError"],
            id="third party: import error",
        ),
        pytest.param(
            (Dist("a", {"p": HOOK}, OWN, attribute="gone"),),
            {},
            story("AttributeError: module 'mod0' has no attribute 'gone'", REG + "module 'mod0' has no attribute 'gone'"),
            [],
            id="required: cannot be loaded",
        ),
        pytest.param(
            (Dist("a", {"p": NOPE}, OWN),),
            {},
            story("orig/orig", "RuntimeError: " + COULD_NOT.format("nope_mod.f"), APP + COULD_NOT.format("nope_mod.f")),
            ["ERROR Failed to apply hooks to nope_mod.f", "TargetError"],
            id="required: target missing",
        ),
        pytest.param(
            (Dist("a", {"p": "pass"}, {"sel": "return 'mod0_apart.A'"}, at_import=NOPE, apart=True),),
            {},
            story("orig/orig", "RuntimeError: " + COULD_NOT.format("nope_mod.f"), APP + COULD_NOT.format("nope_mod.f")),
            ["ERROR Failed to apply hooks to nope_mod.f", "TargetError"],
            id="required: a hook of import time counts",
        ),
        pytest.param(
            (Dist("a", {"p": "hooks.register('tgt:f', lambda: 'hooked', HookType.REPLACE)"}, OWN),),
            {},
            story("orig/orig", "hooked/orig"),
            [],
            id="required: colon target (the releases fail)",
        ),
        pytest.param(
            (Dist("a", {"p": HOOK + "; raise OSError('x')"}),),
            {},
            story("orig/orig"),
            ["ERROR Failed to execute general plugin: p", "OSError: x"],
            id="third party: raises, its hooks are discarded",
        ),
        pytest.param(
            (Dist("a", {"p": "raise OSError('x')"}, at_import=HOOK),),
            {},
            story("orig/orig"),
            ["ERROR Failed to execute general plugin: p", "OSError: x"],
            id="third party: raises, hooks of its import are discarded too",
        ),
        pytest.param(
            (Dist("a", {"p": HOOK.replace("REPLACE)", "REPLACE, source=HookSource('zzz', None))") + "; raise OSError('x')"}),),
            {},
            story("orig/orig", "hooked/orig"),
            ["ERROR Failed to execute general plugin: p", "OSError: x"],
            id="third party: a hook with a source of its own survives",
        ),
        pytest.param(
            (Dist("a", {"p": NOPE}),),
            {},
            story("orig/orig"),
            ["ERROR Failed to apply hooks to nope_mod.f", "TargetError"],
            id="third party: target missing",
        ),
        pytest.param(
            (Dist("a", {"p": HOOK}), Dist("b", {"p": HOOK_G})),
            {},
            story(
                "RuntimeError: Diffusion plugin entry-point names must be unique: 'p'",
                REG + "Diffusion plugin entry-point names must be unique: 'p'",
            ),
            [],
            id="duplicate names",
        ),
        pytest.param(
            (Dist("a", {"p": HOOK}, OWN), Dist("b", {"p": HOOK_G}, {"other": "return None"})),
            {},
            story("orig/orig", "hooked/orig"),
            ["INFO Skipping plugin p (dist b)"],
            id="duplicate name of an excluded distribution",
        ),
        pytest.param(
            (Dist("a", {"p": ""}, attribute="N", at_import="N = 3"),),
            {},
            story("orig/orig"),
            ["ERROR Failed to load plugin p", "TypeError: Diffusion plugin 'p' must resolve to a callable"],
            id="third party: not callable",
        ),
        pytest.param(
            (Dist("a", {"p": ""}, OWN, attribute="N", at_import="N = 3"),),
            {},
            story("TypeError: Diffusion plugin 'p' must resolve to a callable", REG + "Diffusion plugin 'p' must resolve to a callable"),
            [],
            id="required: not callable",
        ),
        pytest.param(
            (Dist("a", {"p": HOOK}, OWN),),
            {"plugins": "other"},
            story("orig/orig"),
            ["INFO Skipping plugin p (dist a): not in SGLANG_PLUGINS"],
            id="the allowlist drops a required plugin",
        ),
        pytest.param(
            (Dist("a", {"p": HOOK}, OWN),),
            {"selector": "cpu"},
            story("orig/orig"),
            ["INFO Skipping plugin p (dist a)"],
            id="a built-in selected: hooks of every platform package are skipped",
        ),
        pytest.param(
            (Dist("a", {"p": HOOK}, {"sel": ACTIVE, "two": ACTIVE}),),
            {"selector": "sel"},
            story("orig/orig", "hooked/orig"),
            [],
            id="a distribution with two platforms keeps its own hooks",
        ),
        pytest.param(
            (Dist("a", {"p": "runtime.apply_plugin_hooks(); " + HOOK}),),
            {},
            story("orig/orig", "hooked/orig"),
            [],
            id="a call from inside returns at once",
        ),
        pytest.param((Dist("a", {"p": "raise SystemExit(3)"}),), {}, story("SystemExit: 3", REG + "3"), [], id="SystemExit is final"),
        pytest.param(
            (
                Dist("a", {"p": "hooks.register('tgt.K', type('K2', (), {}), HookType.REPLACE)"}, OWN),
                Dist("b", {"q": "hooks.register('tgt.K', lambda o: 1, HookType.AROUND)"}),
            ),
            {},
            story("orig/orig"),
            ["ERROR Failed to apply hooks to tgt.K", "HookTypeError", "ERROR Applying the hooks of a alone on: tgt.K"],
            id="a third party's wrong hook does not take the platform's down (the releases abort)",
        ),
    ],
)
def test_diffusion(dists: tuple[Dist, ...], variables: dict[str, str], steps: tuple[str, ...], log: list[str], tmp_path: Path):
    with loading("diffusion", tmp_path, *dists, **variables) as (runtime, target, seen):
        found = []
        for step in (runtime.load_plugins, runtime.apply_plugin_hooks, runtime.apply_plugin_hooks):
            failed = outcome(step)
            found.append(failed if ":" in failed else f"{target.f()}/{target.g()}")
        assert tuple(found) == steps
        told = [line for line in seen.lines if not line.startswith("INFO") or "Skipping" in line]
        assert len(told) == len(log), told
        assert all(line.startswith(begin) for line, begin in zip(told, log, strict=True)), told
        if any("alone" in line for line in log):
            assert target.K.__name__ == "K2"


def test_diffusion_hooks_of_import_time_belong_to_the_plugin(tmp_path: Path):
    dist = Dist("a", {"p": "pass"}, at_import=HOOK)
    with loading("diffusion", tmp_path, dist) as (runtime, _, _log):
        runtime.load_plugins()
        assert sources(runtime) == [HookSource("p", "a")]


def test_diffusion_late_hooks_are_never_applied(tmp_path: Path):
    with loading("diffusion", tmp_path) as (runtime, target, _):
        runtime.apply_plugin_hooks()
        runtime.hooks.register("tgt.f", lambda result: "late")
        runtime.apply_plugin_hooks()
        assert target.f() == "orig"


def test_diffusion_needs_no_platform_where_no_plugin_is_installed(tmp_path: Path):
    with loading("diffusion", tmp_path, Dist("a", {}, {"sel": "raise OSError('broken')"})) as (runtime, _, _log):
        runtime.apply_plugin_hooks()
        assert runtime.resolution is None


def test_hooks_of_the_other_runtime_never_run(tmp_path: Path):
    """S6.1"""
    with loading("srt", tmp_path) as (srt, target, _), loading("diffusion", tmp_path) as (diffusion, _, _log):
        sys.modules["tgt"] = target
        srt.hooks.register("tgt.f", lambda result: "srt")
        diffusion.apply_plugin_hooks()
        assert target.f() == "orig"


# -- init


@pytest.mark.parametrize("runtime", ["srt", "diffusion"])
def test_the_backend_is_initialised_once(runtime: str, tmp_path: Path):
    with loading(runtime, tmp_path, Dist("a", {}, OWN)) as (made, _, _log):
        made.init_backend()
        made.init_backend()
        assert type(made.platform).starts == 1


@pytest.mark.parametrize("runtime", ["srt", "diffusion"])
def test_a_backend_that_fails_is_never_tried_again(runtime: str, tmp_path: Path):
    label = {"srt": "SRT", "diffusion": "Diffusion"}[runtime]
    with loading(runtime, tmp_path, Dist("a", {}, {"sel": "return 'mod0.plat.BadInit'"})) as (made, _, _log):
        assert outcome(made.init_backend) == "OSError: no hw"
        assert outcome(made.init_backend) == f"RuntimeError: {label} platform backend initialization previously failed: no hw"


@pytest.mark.parametrize("runtime", ["srt", "diffusion"])
def test_reading_the_platform_while_it_is_selected_is_named(runtime: str, tmp_path: Path):
    touch = "from fake_engine import runtime; return str(runtime.platform)"
    with loading(runtime, tmp_path, Dist("a", {}, {"sel": touch}), selector="sel") as (made, _, _log):
        assert outcome(lambda: made.platform) == "RuntimeError: current_platform is read while it is being selected"
