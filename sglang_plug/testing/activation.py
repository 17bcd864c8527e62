"""Conformance of the callback: how it is installed, imported and called, before SGLang is there."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Any, ClassVar

from sglang_plug.core import entrypoints
from sglang_plug.core.policy import DIFFUSION
from sglang_plug.core.words import a
from sglang_plug.testing import engine
from sglang_plug.testing.verdict import demand, refuse

if TYPE_CHECKING:
    from sglang_plug.core.entrypoints import Candidate


class ActivationTests:
    """What SGLang needs of the entry point and of its callback (S2, S3, S4)."""

    runtime: ClassVar[str]
    entry_point: ClassVar[str]

    def test_entry_point_is_installed(self, candidates: tuple[Candidate, ...]) -> None:
        """The metadata names the platform."""
        group = engine.policy(self.runtime).platform_group or ""
        known = ", ".join(sorted({found.name for found in entrypoints.installed(group)})) or "none"
        demand(
            candidates,
            f"no entry point {self.entry_point!r} in group {group} (installed: {known})",
            "never sees the platform, and serves on a built-in one",
        )

    def test_entry_point_name_is_unique(self, candidates: tuple[Candidate, ...]) -> None:
        """No other distribution has the same name."""
        dists = ", ".join(str(found.dist) for found in candidates)
        what = "refuses to start" if self.runtime == "diffusion" else "takes the one that is enumerated last, without a word"
        demand(len(candidates) <= 1, f"{len(candidates)} distributions have an entry point {self.entry_point!r}: {dists}", what)

    def test_entry_point_name_can_be_selected(self) -> None:
        """The name survives the variables that carry it."""
        name = self.entry_point
        demand(
            name == name.strip() and "," not in name,
            f"the name {name!r} holds spaces or commas",
            "splits SGLANG_PLUGINS at commas, and trims",
        )
        demand(name.lower() not in DIFFUSION.reserved, f"the name {name!r} is a built-in platform's", "refuses to start, in diffusion")

    def test_callback_does_not_import_sglang(self, activation: dict[str, Any]) -> None:
        """It is called while SGLang is still half-imported."""
        at = activation.get("at") or {}
        where = f" at {at.get('file')}:{at.get('line')} ({at.get('module')})" if at else ""
        demand(
            activation["kind"] != "needs_host",
            f"importing or calling the callback imports sglang{where}",
            "calls the callback while half-imported itself; where the plugin was imported first, it falls back to a built-in platform",
        )

    def test_callback_loads(self, activation: dict[str, Any]) -> None:
        """The module imports, and has the callback."""
        if activation["kind"] == "raised" and activation["stage"] == "load":
            self._refuse_raise("the entry point does not load", activation)

    def test_callback_does_not_raise(self, activation: dict[str, Any]) -> None:
        """Absent hardware is None, not an exception."""
        if activation["kind"] == "raised" and activation["stage"] == "call":
            self._refuse_raise("the callback raises", activation)

    def test_callback_returns(self, activation: dict[str, Any]) -> None:
        """It neither ends the process nor hangs."""
        demand(activation["kind"] != "ended", f"the callback ends its process: {_words(activation['ended'])}", "ends or hangs with it")

    def test_callback_returns_a_name_or_none(self, activation: dict[str, Any]) -> None:
        """Not a class, not a tuple, not a coroutine, not an empty text."""
        demand(
            activation["kind"] != "wrong_type",
            f"the callback returned {a(activation['type'])}: {activation.get('repr')}",
            "takes any answer but None for a class name, and stops with TypeError",
        )
        if activation["kind"] == "returned":
            name = activation["returned"]
            demand(name.strip() == name and name, f"the callback returned {name!r}", "cannot resolve that name")

    def test_callback_prints_nothing(self, activation: dict[str, Any]) -> None:
        """Programs read what SGLang's commands print."""
        text = str(activation["output"]["head"])
        demand(
            not text.strip(),
            f"the callback prints: {text.strip()[:200]!r}",
            "calls it in every process, so that every command's output begins with this",
        )

    def test_callback_leaves_no_processes(self, activation: dict[str, Any]) -> None:
        """Nothing is started that outlives the call."""
        demand(
            not activation.get("leftovers"),
            f"the callback leaves processes behind: {activation.get('leftovers')}",
            "calls it in every process",
        )

    def test_callback_always_says_the_same(self, candidates: tuple[Candidate, ...]) -> None:
        """Every process asks anew, and all must agree."""
        if candidates:
            engine.prepare()
            callback = entrypoints.load(candidates[-1])
            first, second = callback(), callback()
            demand(first == second, f"the callback returned {first!r}, then {second!r}", "would run its processes on different platforms")

    def test_callback_leaves_the_environment_alone(self, candidates: tuple[Candidate, ...]) -> None:
        """It asks; it sets nothing up."""
        if candidates:
            engine.prepare()
            before = dict(os.environ)
            entrypoints.load(candidates[-1])()
            changed = sorted(name for name in before.keys() | os.environ.keys() if before.get(name) != os.environ.get(name))
            os.environ.clear()
            os.environ.update(before)
            demand(
                not changed,
                f"the callback changes {', '.join(changed)}",
                "also calls the callbacks of platforms that it then does not choose; set-up belongs in init_backend()",
            )

    def test_callback_initialises_no_device(self, candidates: tuple[Candidate, ...]) -> None:
        """A device that is initialised in the parent breaks the children."""
        import sys

        if candidates:
            entrypoints.load(candidates[-1])()
            torch = sys.modules.get("torch")
            started = torch is not None and torch.cuda.is_initialized()
            demand(not started, "the callback initialises the device", "forks later, and a forked child cannot use an initialised device")

    @staticmethod
    def _refuse_raise(what: str, activation: dict[str, Any]) -> None:
        error = activation["error"]
        root = error["root"]
        at = root.get("where") or {}
        place = f"\n  at {at['file']}:{at['line']}" if at else ""
        refuse(
            f"{what}: {root['type']}: {root['message']}{place}",
            "logs it and serves on a built-in platform (SRT, nothing selected); stops (diffusion, or the platform is selected)",
        )


def _words(ended: dict[str, Any]) -> str:
    """The end of a process in words: `exit (status 3)`, `signal (SIGSEGV)`, `timeout`."""
    details = ", ".join(f"{key} {value}" for key, value in ended.items() if key != "kind" and isinstance(value, int | str))
    return f"{ended['kind']} ({details})" if details else str(ended["kind"])
