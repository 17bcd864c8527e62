"""Which interpreter is inspected, with which variables, folder and launch style. A value; starts nothing."""

from __future__ import annotations

import os
import sys
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Literal

from sglang_plug.errors import UsageError

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

Launch = Literal["script", "module"]
SELECTORS = {"srt": "SGLANG_PLATFORM", "diffusion": "SGLANG_DIFFUSION_PLATFORM_OVERRIDE"}
ALLOWLIST = "SGLANG_PLUGINS"


@dataclass(frozen=True)
class Environment:
    """What a launch of SGLang would see.

    Attributes:
        python: the interpreter's path.
        env: all environment variables.
        cwd: the working directory.
        launch: `script` (the `sglang` command: its folder is first on sys.path) or `module` (`python -m`, `-c`: the working directory is).
    """

    python: str
    env: Mapping[str, str] = field(repr=False)
    cwd: str
    launch: Launch = "script"

    @classmethod
    def here(cls, python: str | None = None, *, launch: Launch = "script") -> Environment:
        """Return this process's own environment, optionally with another interpreter.

        Raises:
            UsageError: `python` names no file that can be run, or the working directory is gone.
        """
        try:
            cwd = os.getcwd()
        except FileNotFoundError as exc:
            raise UsageError("the working directory no longer exists", hint="change to another one: cd /") from exc
        return cls(find_python(python) if python else sys.executable, dict(os.environ), cwd, launch)

    def with_variables(self, changes: Mapping[str, str | None]) -> Environment:
        """Return a copy with variables set, or removed where the value is None."""
        env = {name: value for name, value in self.env.items() if name not in changes}
        env.update({name: value for name, value in changes.items() if value is not None})
        return replace(self, env=env)


def find_python(python: str) -> str:
    """Return the path of an interpreter named by path, by command name, or by the folder of its virtual environment.

    Raises:
        UsageError: it cannot be run.
    """
    import shutil

    path = os.path.expanduser(python)
    why = "no executable file of that name"
    if os.path.isdir(path):
        path = os.path.join(path, "bin", "python")
        why = f"it is a folder, and no environment: there is no {path}"
    found = shutil.which(path)
    if found is None:
        raise UsageError(
            f"no such interpreter: {python}",
            subject=f"--python {python}",
            cause=why if not os.path.exists(path) else "the file is not executable",
            hint="give the path of a Python >= 3.10, for example --python /opt/venv/bin/python",
        )
    return os.path.abspath(found)


def interpreter_of(command: str) -> str | None:
    """Return the interpreter that a script's first line names, or None where it names none."""
    import shutil

    try:
        with open(command, "rb") as file:
            first = file.read(512).splitlines()[:3]
    except OSError:
        return None
    if not first or not first[0].startswith(b"#!"):
        return None
    words = first[0][2:].decode("utf-8", "replace").split()
    if words and os.path.basename(words[0]) == "sh" and len(first) > 1:  # pip's form for long paths: #!/bin/sh, then exec
        quoted = first[1].decode("utf-8", "replace").split('"')
        return quoted[1] if len(quoted) > 1 else None
    if words and os.path.basename(words[0]) == "env":
        return shutil.which(words[-1])
    return words[0] if words else None


def prefix_of(python: str) -> str:
    """Return the prefix of an interpreter by its path: the folder above its bin folder."""
    return os.path.dirname(os.path.dirname(os.path.abspath(python)))


def other_engine(environment: Environment, prefix: str) -> str | None:
    """Return the interpreter behind the `sglang` command on PATH, where it is not the inspected one (whose prefix is `prefix`)."""
    import shutil

    command = shutil.which("sglang", path=environment.env.get("PATH"))
    theirs = interpreter_of(command) if command else None
    if theirs is None or os.path.realpath(prefix_of(theirs)) == os.path.realpath(prefix):
        return None
    return theirs


def variables_for(
    *,
    platform: str | None = None,
    plugins: str | None = None,
    env: Iterable[str] = (),
    runtimes: Iterable[str] = ("srt", "diffusion"),
) -> dict[str, str | None]:
    """Return the variables that a what-if sets, by name; None removes one.

    A `SGL_X` alias wins over `SGLANG_X` inside SGLang, so `platform` and `plugins` also remove the alias; `env` is taken as it is written.

    Args:
        platform: what the selectors of `runtimes` name.
        plugins: the allowlist.
        env: `KEY=VALUE` texts; `KEY=` sets the empty text, and `KEY` alone removes the variable.

    Raises:
        UsageError: a text of `env` has no name, or one variable gets two values.
    """
    changes: dict[str, str | None] = {}
    if platform is not None:
        changes.update(_set({SELECTORS[runtime]: platform for runtime in runtimes}))
    if plugins is not None:
        changes.update(_set({ALLOWLIST: plugins}))
    for text in env:
        name, equals, value = text.partition("=")
        if not name or any(char.isspace() for char in name):
            raise UsageError(
                f"not a variable: {text!r}", subject=f"--env {text}", hint="write --env NAME=VALUE, or --env NAME to remove it"
            )
        if name in changes and changes[name] not in {None, value if equals else None}:
            raise UsageError(
                f"two values for {name}: {changes[name]!r} and {text.partition('=')[2]!r}",
                subject=f"--env {text}",
                hint="say it once: by --platform or --plugins, or by --env",
            )
        changes[name] = value if equals else None
    return changes


def _set(values: Mapping[str, str]) -> dict[str, str | None]:
    aliases = {"SGL_" + name.removeprefix("SGLANG_"): None for name in values if name.startswith("SGLANG_")}
    return {**aliases, **values}
