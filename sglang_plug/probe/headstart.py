"""Starts the probe's child before the command line is parsed: two interpreters start side by side. Owns at most one waiting child."""

from __future__ import annotations

from typing import TYPE_CHECKING

from sglang_plug.errors import SglangPlugError
from sglang_plug.probe.environment import Environment
from sglang_plug.probe.parent import Probe

if TYPE_CHECKING:
    from collections.abc import Sequence

FIRST = {"op": "environment"}  # what every command that looks at an environment asks first
COMMANDS = ("resolve", "list")
CHANGING = ("--platform", "--plugins", "--env", "--hook", "--help", "-h")  # with these the environment is another one, or none is looked at
_waiting: list[Probe] = []


def begin(argv: Sequence[str]) -> None:
    """Start a child where `argv` leaves no doubt about the environment to look at; else do nothing."""
    if not argv or argv[0] not in COMMANDS or any(word.split("=", 1)[0] in CHANGING for word in argv[1:]):
        return
    launch = _value(argv, "--launch") or "script"
    if launch not in {"script", "module"}:
        return
    try:
        probe = Probe(Environment.here(_value(argv, "--python"), launch="module" if launch == "module" else "script"))
    except SglangPlugError:
        return  # the command itself says what is wrong, in its own words
    probe.send(FIRST)
    _waiting.append(probe)


def _value(argv: Sequence[str], option: str) -> str | None:
    for index, word in enumerate(argv):
        if word == option and index + 1 < len(argv):
            return argv[index + 1]
        if word.startswith(option + "="):
            return word[len(option) + 1 :]
    return None


def take(environment: Environment) -> Probe:
    """Return the waiting child, where it looks at that very environment, else a new one.

    Raises:
        ProbeError: the interpreter cannot be started.
    """
    while _waiting:
        probe = _waiting.pop()
        if probe.environment == environment:
            return probe
        probe.close()
    return Probe(environment)


def discard() -> None:
    """End a child that nobody took."""
    while _waiting:
        _waiting.pop().close()
