"""`HookContract`: conformance tests of a hook plugin, for a subclass of three lines. No target is patched but by the last of them."""

from __future__ import annotations

import inspect
from typing import TYPE_CHECKING, Any, ClassVar

import pytest

from sglang_plug.contract.model import CALLABLE, Kind
from sglang_plug.core import entrypoints, objects
from sglang_plug.core.policy import REGISTRIES
from sglang_plug.core.words import a
from sglang_plug.testing import engine, hooking
from sglang_plug.testing.verdict import demand, refuse

if TYPE_CHECKING:
    from collections.abc import Callable

    from sglang_plug.contract.model import Symbol
    from sglang_plug.core.entrypoints import Candidate
    from sglang_plug.testing.hooking import Registration


class HookContract:
    """Subclass it as `TestMyHooks`, and name the entry point.

    Attributes:
        runtime: `srt` or `diffusion`.
        entry_point: the plugin's entry-point name.
    """

    runtime: ClassVar[str] = "srt"
    entry_point: ClassVar[str] = ""

    @pytest.fixture(scope="class")
    @classmethod
    def candidates(cls) -> tuple[Candidate, ...]:
        """Every installed entry point of the group that has the name."""
        group = engine.policy(cls.runtime).hook_group or ""
        return tuple(found for found in entrypoints.installed(group) if found.name == cls.entry_point)

    @pytest.fixture(scope="class")
    @classmethod
    def registrations(cls, candidates: tuple[Candidate, ...]) -> tuple[Registration, ...]:
        """What the callback registers, with either runtime; caught, so nothing is applied."""
        if not candidates:
            pytest.skip("not installed")
        try:
            with hooking.caught() as found:
                hooking.load(candidates[-1])()
        except Exception as exc:  # noqa: BLE001 - whatever a stranger's callback raises is the finding
            what = "logs it and serves without the hooks"
            if cls.runtime == "diffusion":
                what = "stops, where the hooks ship with the selected platform; else it logs it and serves without them"
            refuse(f"the callback fails: {type(exc).__name__}: {exc}", what)
        return tuple(found)

    @pytest.fixture(scope="class")
    @classmethod
    def targets(cls, registrations: tuple[Registration, ...]) -> list[tuple[Registration, Symbol]]:
        """The hooks whose targets the catalogue knows."""
        release = engine.contract()
        pairs = ((entry, release.find(objects.dotted(entry.target))) for entry in registrations if entry.runtime == cls.runtime)
        return [(entry, symbol) for entry, symbol in pairs if symbol is not None]

    def test_entry_point_is_installed(self, candidates: tuple[Candidate, ...]) -> None:
        """The metadata names the plugin."""
        group = engine.policy(self.runtime).hook_group
        demand(candidates, f"no entry point {self.entry_point!r} in group {group}", "never loads the plugin")

    def test_entry_point_name_is_unique(self, candidates: tuple[Candidate, ...]) -> None:
        """No other distribution has the same name."""
        dists = ", ".join(str(found.dist) for found in candidates)
        what = "refuses to start" if self.runtime == "diffusion" else "loads the last, without a word"
        demand(len(candidates) <= 1, f"{len(candidates)} distributions have the name {self.entry_point!r}: {dists}", what)

    def test_something_is_registered(self, registrations: tuple[Registration, ...]) -> None:
        """The callback registers hooks."""
        demand(registrations, "the callback registers nothing", "loads the plugin, and nothing changes")

    def test_the_right_registry_is_used(self, registrations: tuple[Registration, ...]) -> None:
        """Each runtime applies its own hooks only (S6.1)."""
        lost = sorted({entry.target for entry in registrations if entry.runtime != self.runtime})
        right = REGISTRIES[self.runtime]
        demand(not lost, f"registered with the other runtime: {', '.join(lost)}", f"never runs them; import HookRegistry from {right}")

    def test_targets_exist(self, registrations: tuple[Registration, ...]) -> None:
        """In the release that is installed."""
        release = engine.contract()
        for entry in registrations:
            if entry.target.startswith("sglang.") and release.find(objects.dotted(entry.target)) is None:
                near = ", ".join(release.near(objects.dotted(entry.target), limit=3)) or "nothing like it"
                refuse(f"SGLang {release.version} has no {entry.target} (near: {near})", "logs that, and serves without the hook")

    def test_colon_targets_have_a_class(self, registrations: tuple[Registration, ...]) -> None:
        """Of colon forms, releases only take `module:Class.method`."""
        bad = [entry.target for entry in registrations if ":" in entry.target and "." not in entry.target.partition(":")[2]]
        demand(not bad, f"{', '.join(bad)} cannot be applied", "only takes module:Class.method with a colon; write a dot instead")

    def test_types_fit_targets(self, targets: list[tuple[Registration, Symbol]]) -> None:
        """A class is replaced, everything else is called."""
        for entry, symbol in targets:
            if symbol.kind is Kind.CLASS:
                demand(
                    entry.type == "replace",
                    f"{entry.target} is a class, and the hook is {entry.type}",
                    "logs TypeError, and serves without the hook",
                )
            else:
                sure = symbol.kind in CALLABLE or symbol.kind in {Kind.UNKNOWN, Kind.EXTERNAL}
                demand(sure, f"{entry.target} is {a(symbol.label)}, which is never called", "puts a function in its place")

    def test_hooks_take_the_targets_arguments(self, targets: list[tuple[Registration, Symbol]]) -> None:
        """Each hook can be called as its type says."""
        for entry, symbol in targets:
            if isinstance(entry.function, type) or symbol.parameters is None:
                continue
            fault = _misfit(entry.function, entry.type, symbol)
            demand(
                fault is None,
                f"the {entry.type} hook on {entry.target}{symbol.signature} cannot be called: {fault}",
                "gets TypeError at the first call",
            )

    def test_coroutines_are_awaited(self, targets: list[tuple[Registration, Symbol]]) -> None:
        """AFTER meets the coroutine and must await it; BEFORE is called, never awaited. What AROUND returns, the caller awaits."""
        for entry, symbol in targets:
            if not symbol.is_async or symbol.makes_context or isinstance(entry.function, type):
                continue
            is_async = inspect.iscoroutinefunction(entry.function) or inspect.isasyncgenfunction(entry.function)
            if entry.type == "after":
                demand(
                    is_async,
                    f"{entry.target} is {symbol.label}; the after hook gets the coroutine, not its result",
                    "hands the hook what the call returns: write AROUND with `async def` and await the original",
                )
            elif entry.type == "before":
                demand(
                    not is_async,
                    f"the before hook on {entry.target} is async",
                    "calls it without await, and takes the coroutine for (args, kwargs)",
                )

    def test_hooks_are_not_async_where_targets_are_not(self, targets: list[tuple[Registration, Symbol]]) -> None:
        """A coroutine is no result."""
        for entry, symbol in targets:
            if symbol.kind in CALLABLE and not symbol.is_async and not isinstance(entry.function, type):
                is_async = inspect.iscoroutinefunction(entry.function)
                demand(
                    not is_async,
                    f"the {entry.type} hook on {entry.target} is async, the target is not",
                    "takes the coroutine for the result",
                )

    def test_one_hook_replaces_a_target(self, registrations: tuple[Registration, ...]) -> None:
        """Of several REPLACE only the last counts."""
        targets = [objects.dotted(entry.target) for entry in registrations if entry.type == "replace"]
        twice = sorted({target for target in targets if targets.count(target) > 1})
        demand(not twice, f"replaced more than once: {', '.join(twice)}", "warns, and takes the last")

    def test_targets_are_alive(self, targets: list[tuple[Registration, Symbol]]) -> None:
        """No target that is patched and then never called, or that breaks the start."""
        from sglang_plug.contract import peculiarities

        release = engine.contract()
        for entry, _ in targets:
            for note in peculiarities.of(release, objects.dotted(entry.target), replaces=entry.type == "replace"):
                if note.level == "dead":
                    better = f"; hook {note.instead} instead" if note.instead else ""
                    refuse(f"a hook on {entry.target} does not work in SGLang {release.version}", f"{note.text}{better}")

    def test_hooks_can_be_applied_and_taken_back(self, registrations: tuple[Registration, ...], hooked: Callable[..., Any]) -> None:
        """Every target resolves here, is patched once, and is what it was afterwards."""
        if not registrations:
            pytest.skip("nothing is registered")
        done = hooked(self.entry_point, runtime=self.runtime)
        beyond = [target for target in done.failures if not engine.is_real() and engine.contract().find(objects.dotted(target))]
        for target, error in done.failures.items():
            if target not in beyond:
                refuse(f"{target} cannot be hooked: {error}", "logs it, and serves without the hook")
        patches = list(done.registry.patches.values())
        done.revert()
        left = [patch.place.text for patch in patches if vars(patch.place.parent).get(patch.place.attribute) is patch.new]
        demand(not left, f"still patched: {', '.join(left)}", "keeps the patch for the life of the process")
        if beyond:
            pytest.skip(f"SGLang {engine.release()} has {', '.join(beyond)}, the stand-in has not; the rest was applied and taken back")


def _misfit(function: Callable[..., Any], kind: str, symbol: Symbol) -> str | None:
    """Why the hook cannot be called for a call of the target with all its arguments, or None."""
    try:
        signature = inspect.signature(function)
    except (TypeError, ValueError):
        return None
    parameters = symbol.parameters or ()
    arguments: list[object] = [None] * sum(1 for p in parameters if p.kind in {"positional", "positional-only"} and p.required)
    keywords = {p.name: None for p in parameters if p.kind == "keyword-only" and p.required}
    first = [] if kind in {"before", "replace"} else [None]  # AFTER: the result, AROUND: the original
    try:
        signature.bind(*first, *arguments, **keywords)
    except TypeError as exc:
        return str(exc)
    return None
