"""A launch written down for a shell, a script, Docker, systemd or Kubernetes. Values in, text out; each quotes as its reader unquotes."""

from __future__ import annotations

import json
import shlex
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from sglang_plug.launch.plan import Plan

FAMILIES = ("SGLANG_", "SGL_")


def render(plan: Plan, form: str) -> str:
    """Return the launch in `form`: `shell`, `json`, `dockerfile`, `systemd` or `kubernetes`."""
    return FORMS[form](plan)


def variables(plan: Plan, *, elsewhere: bool = False) -> dict[str, str]:
    """Return the variables that the launch needs: SGLang's own, what this launch changes, and on this machine where plugins are found."""
    env = plan.environment.env
    names = {name for name in env if name.startswith(FAMILIES) or (name == "PYTHONPATH" and not elsewhere)}
    names |= {name for name, value in plan.changes.items() if value is not None}
    return {name: env[name] for name in sorted(names)}


def removed(plan: Plan) -> list[str]:
    """Return the variables that must not be set: aliases that would win."""
    return sorted(name for name, value in plan.changes.items() if value is None)


def _shell(plan: Plan) -> str:
    head = ["env", *(part for name in removed(plan) for part in ("-u", name))] if removed(plan) else []
    settings = [f"{name}={shlex.quote(value)}" for name, value in variables(plan).items()]
    words = " ".join(["exec", *head] if head and not settings else head)
    lines = [*([words] if words else []), *settings, *_grouped(plan.argv)]
    return " \\\n  ".join(lines) + "\n"


def _grouped(argv: tuple[str, ...]) -> list[str]:
    """Return the words of a command, an option and its value on one line."""
    lines: list[str] = []
    for word in argv:
        option = word.startswith("-") and not word[1:2].isdigit()
        if not lines or option:
            lines.append(shlex.quote(word))
        else:
            lines[-1] += f" {shlex.quote(word)}"
    return lines


def _json(plan: Plan) -> str:
    facts = {
        "schema": 1,
        "engine": plan.engine,
        "release": plan.release,
        "runtime": plan.runtime,
        "cwd": plan.environment.cwd,
        "env": variables(plan),
        "unset": removed(plan),
        "argv": list(plan.argv),
        "url": plan.arguments.url,
    }
    return json.dumps(facts, indent=2) + "\n"


def _dockerfile(plan: Plan) -> str:
    base = f"lmsysorg/sglang:v{plan.release}" if plan.release else "python:3.11"
    needed = variables(plan, elsewhere=True)
    broken = [f"{name}={value}" for name, value in needed.items() if "\n" in value]  # ENV has no way to say a line break
    lines = [
        "# The base image must hold the engine; add the plugins that `sglang-plug list` shows.",
        f"FROM {base}",
        "# RUN pip install YOUR-PLUGIN",
        *(f"ENV {name}={_quoted(value, dollar=chr(92) + '$')}" for name, value in needed.items() if "\n" not in value),
        *_listening(plan),
        f"EXPOSE {plan.arguments.port}",
        f"CMD {json.dumps([*(['env', *broken] if broken else []), *_portable(plan)])}",
    ]
    return "\n".join(lines) + "\n"


def _systemd(plan: Plan) -> str:
    lines = [
        "[Unit]",
        f"Description=SGLang ({plan.runtime}) on {plan.arguments.url}",
        "Wants=network-online.target",
        "After=network-online.target",
        "",
        "[Service]",
        f"WorkingDirectory={plan.environment.cwd.replace('%', '%%')}",
        *(f"Environment={_quoted(f'{name}={value}', percent='%%')}" for name, value in variables(plan).items()),
        *(f"UnsetEnvironment={name}" for name in removed(plan)),
        f"ExecStart={' '.join(_word(word) for word in plan.argv)}",
        "KillMode=mixed",
        "TimeoutStopSec=15",
        "Restart=on-failure",
        "",
        "[Install]",
        "WantedBy=multi-user.target",
    ]
    return "\n".join(lines) + "\n"


def _kubernetes(plan: Plan) -> str:
    # JSON strings are YAML strings, so json.dumps quotes everything that the user wrote; Kubernetes itself expands `$(…)` and halves `$$`.
    needed = variables(plan, elsewhere=True).items()
    env = [f"            - name: {json.dumps(name)}\n              value: {json.dumps(_doubled(value))}" for name, value in needed]
    image = json.dumps(f"lmsysorg/sglang:v{plan.release}" if plan.release else "YOUR-IMAGE")
    note = "".join(f"{line}\n" for line in _listening(plan))
    return f"""\
{note}apiVersion: apps/v1
kind: Deployment
metadata:
  name: sglang
spec:
  replicas: 1
  selector:
    matchLabels: {{app: sglang}}
  template:
    metadata:
      labels: {{app: sglang}}
    spec:
      containers:
        - name: sglang
          image: {image}  # with the plugins installed
          command: {json.dumps([_doubled(word) for word in _portable(plan)])}
          env:{"" if env else " []"}
{chr(10).join(env)}{chr(10) if env else ""}\
          ports:
            - containerPort: {plan.arguments.port}
          startupProbe:
            httpGet: {{path: /health, port: {plan.arguments.port}}}
            periodSeconds: 5
            failureThreshold: 240
          readinessProbe:
            httpGet: {{path: /health, port: {plan.arguments.port}}}
            timeoutSeconds: 20
      terminationGracePeriodSeconds: 15
"""


def _portable(plan: Plan) -> list[str]:
    """Return the command by name: paths of this machine's interpreter mean nothing in an image."""
    head, *rest = plan.argv
    return [head.rpartition("/")[2], *rest]


def _listening(plan: Plan) -> list[str]:
    if plan.arguments.host in {"127.0.0.1", "localhost", "::1"}:
        return [f"# The engine listens on {plan.arguments.host}, which nobody outside the container reaches: add --host 0.0.0.0"]
    return []


def _doubled(text: str) -> str:
    return text.replace("$", "$$")


def _quoted(text: str, *, dollar: str = "$", percent: str = "%") -> str:
    escaped = text.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n").replace("$", dollar).replace("%", percent)
    return f'"{escaped}"'


def _word(word: str) -> str:
    """Quote one word of ExecStart, where `$` and `%` are doubled."""
    plain = word.replace("%", "%%").replace("$", "$$")
    return plain if plain and all(char.isalnum() or char in "-_./=:,@+%$" for char in plain) else _quoted(plain)


FORMS: Mapping[str, Callable[[Plan], str]] = {
    "shell": _shell,
    "json": _json,
    "dockerfile": _dockerfile,
    "systemd": _systemd,
    "kubernetes": _kubernetes,
}
