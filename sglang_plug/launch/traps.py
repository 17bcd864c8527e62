"""What goes wrong with a launch and can be known before it: one function a trap. Looks at values, local files and ports."""

from __future__ import annotations

import errno
import os
import socket
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from sglang_plug.checks.model import Finding, Level
from sglang_plug.launch.arguments import LAST_PORT
from sglang_plug.launch.modelfiles import broken_model
from sglang_plug.probe.decision import numbers

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from sglang_plug.core.resolution import Resolution
    from sglang_plug.core.selection import Choice
    from sglang_plug.launch.plan import Plan

BIND = "SGLANG_CPU_OMP_THREADS_BIND"
_DUMMY = "dummy"


@dataclass(frozen=True)
class Situation:
    """What the traps look at."""

    plan: Plan
    resolution: Resolution
    choices: Sequence[Choice] = ()
    fingerprint: str = ""
    expected: str | None = None

    @property
    def release(self) -> tuple[int, ...]:
        """The release whose behaviour counts, as numbers; the stand-in behaves as the newest."""
        return numbers(self.plan.release) if self.plan.release else (99,)

    @property
    def loaded(self) -> list[str]:
        return [choice.candidate.name for choice in self.choices if choice.verdict == "load"]


def find(situation: Situation) -> list[Finding]:
    """Return what every trap has to say, in the table's order."""
    return [finding for trap in TRAPS for finding in trap(situation)]


def port_in_use(at: Situation) -> Iterator[Finding]:
    """SP053: the server's port is taken, which SGLang notices only after the model is loaded."""
    arguments = at.plan.arguments
    host = arguments.host
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    with socket.socket(family, socket.SOCK_STREAM) as door:
        door.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            door.bind((host, arguments.port))
        except OSError as exc:
            subject = {"kind": "port", "name": str(arguments.port)}
            what = f"port {arguments.port} of {host} cannot be used"
            yield _finding("SP053", subject, what, cause=str(exc), hint=_way_to_a_port(exc, host, arguments.port))


def _way_to_a_port(exc: OSError, host: str, port: int) -> str:
    if isinstance(exc, socket.gaierror) or exc.errno == errno.EADDRNOTAVAIL:
        return f"{host} is no address of this machine: --host 127.0.0.1 for this machine alone, --host 0.0.0.0 for all that reach it"
    if exc.errno == errno.EACCES:
        return "ports below 1024 are for the administrator: name another, for example --port 30000"
    return f"stop the other server, or name another port: --port {port + 1 if port < LAST_PORT else port - 1}"


def model_missing(at: Situation) -> Iterator[Finding]:
    """SP054: no model, or a folder that is not one."""
    model = at.plan.arguments.model
    subject = {"kind": "model", "name": model or ""}
    if model is None:
        if at.plan.engine == "sglang" and at.plan.arguments.text("config") is None:
            yield _finding("SP054", subject, "no model is named", hint="name one: --model-path PATH-OR-NAME")
        return
    path = Path(model).expanduser()
    if not path.exists():
        if model.startswith(("/", ".", "~")) or model.count("/") > 1:
            yield _finding("SP054", subject, f"the model folder does not exist: {model}", hint="check --model-path")
        return
    if not path.is_dir():
        return
    what, arguments = f"{model} holds no complete model", at.plan.arguments
    if why := broken_model(path, weights=arguments.tokens.count(_DUMMY) == 0):
        yield _finding("SP054", subject, what, cause=why, hint="copy or download the model's files again")
    elif _standin_cannot_read(at.plan, path):
        why = "tokenizer.json is not there, and the stand-in reads no other tokenizer"
        yield _finding("SP054", subject, what, cause=why, hint="name a folder that has one: --tokenizer-path PATH")


def _standin_cannot_read(plan: Plan, folder: Path) -> bool:
    at_home = plan.arguments.text("tokenizer") is None
    return (plan.engine, plan.runtime) == ("standin", "srt") and at_home and not (folder / "tokenizer.json").is_file()


def silent_fallback(at: Situation) -> Iterator[Finding]:
    """SP051, SP105: a platform plugin is installed, failed or was filtered away, and a built-in would serve in its place."""
    if at.resolution.outcome != "builtin":
        return
    for step in at.resolution.steps:
        code = {("activate", "failed"): "SP051", ("allowlist", "skipped"): "SP105"}.get((step.rule, step.verdict))
        if code is not None:
            way = "see why: `sglang-plug doctor`" if code == "SP051" else f"serve with --platform {step.subject}"
            yield _finding(
                code,
                {"kind": "entry_point", "name": step.subject, "dist": str(step.data.get("dist") or "")},
                f"platform plugin {step.subject!r} is installed, but {at.resolution.name} would serve: {at.resolution.qualname}",
                cause=step.why,
                hint=f"{way}; or uninstall it, or go on with --allow {code}",
            )


def hardware_absent(at: Situation) -> Iterator[Finding]:
    """SP309: a platform plugin says that its hardware is absent, and a built-in serves in its place."""
    if at.resolution.outcome != "builtin":
        return
    for step in at.resolution.steps:
        if (step.rule, step.verdict) == ("activate", "inactive"):
            subject = {"kind": "entry_point", "name": step.subject, "dist": str(step.data.get("dist") or "")}
            message = f"platform plugin {step.subject!r} says that its hardware is absent; {at.resolution.name} will serve"
            yield _finding("SP309", subject, message, level=Level.WARNING, hint=f"where it should be there: --platform {step.subject}")


def own_plugins_skipped(at: Situation) -> Iterator[Finding]:
    """SP106, SP601: hooks of the selected platform's own distribution are not loaded."""
    if at.resolution.outcome != "plugin":
        return
    for choice in at.choices:
        name, dist = choice.candidate.name, choice.candidate.dist
        if dist == at.resolution.dist and choice.verdict != "load":
            code = "SP601" if "distribution provides a platform" in choice.why else "SP106"
            way = "split the package, or select it without a variable" if code == "SP601" else f"add {name} to --plugins"
            yield _finding(
                code,
                {"kind": "entry_point", "name": name, "dist": dist or "", "group": choice.candidate.group},
                f"{name!r} ships with the selected platform {at.resolution.name!r}, and would not be loaded",
                cause=choice.why,
                hint=f"{way}; or go on with --allow {code}",
            )


def ranks_without_cores(at: Situation) -> Iterator[Finding]:
    """SP055: several ranks on a CPU, and no word about which cores are whose."""
    arguments = at.plan.arguments
    ranks = arguments.number("tp") * arguments.number("dp") * arguments.number("pp")
    external = at.resolution.outcome == "plugin" or at.resolution.name in {"cpu", "base"}
    if at.plan.engine != "sglang" or at.plan.runtime != "srt" or not external or ranks < 2:
        return
    bound = at.plan.environment.env.get(BIND)
    nodes = numa_nodes()
    groups = len(bound.split("|")) if bound and bound != "all" else nodes
    if ranks > groups:
        example = "|".join(str(rank) for rank in range(ranks))
        yield _finding(
            "SP055",
            {"kind": "variable", "name": BIND},
            f"{ranks} ranks and {groups} {'groups of cores' if bound else 'NUMA node(s)'}: on a CPU device SGLang stops while it starts",
            level=Level.ERROR if at.resolution.name in {"cpu", "base"} else Level.WARNING,
            cause=f"{BIND} is {bound!r}" if bound else f"{BIND} is not set",
            hint=f"where the platform's device is the CPU: export {BIND}='{example}'",
        )


def numa_nodes() -> int:
    """Return how many NUMA nodes this machine has; 1 where it does not tell."""
    try:
        return max(1, sum(name.startswith("node") and name[4:].isdigit() for name in os.listdir("/sys/devices/system/node")))
    except OSError:
        return 1


def tokenizers_without_hooks(at: Situation) -> Iterator[Finding]:
    """SP056: tokenizer workers load no plugins."""
    count = at.plan.arguments.number("tokenizers")
    if count < 2 or at.plan.runtime != "srt" or at.plan.engine != "sglang":
        return
    yield _finding(
        "SP056",
        {"kind": "host", "name": "tokenizer workers"},
        f"{count} tokenizer workers: no plugin is loaded in them, so hooks on TokenizerManager and the HTTP server never fire",
        level=Level.WARNING,
        cause=f"{', '.join(at.loaded) or 'no hook plugin'} would be loaded elsewhere only; on a busy machine workers that need over five "
        "seconds to import are restarted again and again, and the start takes minutes",
        hint="leave --tokenizer-worker-num at 1 where hooks on the HTTP side matter",
    )


def ray_without_hooks(at: Situation) -> Iterator[Finding]:
    """SP057: under Ray the scheduler actor loads no plugins, knows no variable of this launch, and hangs where CUDA is missing."""
    if not at.plan.arguments.on("ray"):
        return
    ours = sorted(f"{name}={value}" for name, value in at.plan.changes.items() if value and name.startswith(("SGLANG_", "SGL_")))
    causes = [f"loaded elsewhere only: {', '.join(at.loaded)}"] if at.loaded else []
    if ours:
        causes.append(f"the actor gets its variables from `ray start`, so {' '.join(ours)} of this launch may not reach it")
    causes.append(
        "without CUDA the actor fails in torch.cuda.set_device, and the server hangs, unless init_backend() replaces that function"
    )
    way = f"serve without --use-ray; or run `{' '.join(ours)} ray start …` on every node" if ours else "serve without --use-ray"
    yield _finding(
        "SP057",
        {"kind": "host", "name": "--use-ray"},
        "under Ray no hook plugin is loaded in the scheduler actor: hooks on Scheduler, TpModelWorker, ModelRunner and models never fire",
        level=Level.ERROR if at.loaded or ours else Level.WARNING,
        cause="; ".join(causes),
        hint=f"{way}, and go on with --allow SP057",
    )


def old_release_without_hooks(at: Situation) -> Iterator[Finding]:
    """SP058: before 0.5.22 the detokenizer and the data-parallel controller load no plugins."""
    if at.plan.runtime == "srt" and at.loaded and at.release < (0, 5, 22):
        places = ["detokenizer"] + (["data-parallel controller"] if at.plan.arguments.number("dp") > 1 else [])
        yield _finding(
            "SP058",
            {"kind": "host", "name": f"SGLang {at.plan.release}"},
            f"SGLang {at.plan.release} loads no plugin in: {', '.join(places)}; hooks there never fire",
            level=Level.INFO,
            hint="SGLang 0.5.22 and newer load them",
        )


def many_nodes(at: Situation) -> Iterator[Finding]:
    """SP059: every node decides for itself; the same plugins and variables must be on each."""
    nodes = at.plan.arguments.number("nodes")
    subject = {"kind": "host", "name": "--nnodes"}
    if at.expected is not None and at.expected != at.fingerprint:
        message = f"this node's fingerprint is {at.fingerprint}, not {at.expected}: its SGLang, plugins or variables differ"
        yield _finding("SP059", subject, message, hint="compare `sglang-plug resolve --format json` on both nodes")
    elif nodes > 1 and at.expected is None:
        yield _finding(
            "SP059",
            subject,
            f"{nodes} nodes: each selects its platform and loads its plugins by itself; this node's fingerprint is {at.fingerprint}",
            level=Level.WARNING,
            hint=f"serve on the other nodes with --expect-fingerprint {at.fingerprint}",
        )


TRAPS: tuple[Callable[[Situation], Iterator[Finding]], ...] = (
    port_in_use,
    model_missing,
    silent_fallback,
    hardware_absent,
    own_plugins_skipped,
    ranks_without_cores,
    tokenizers_without_hooks,
    ray_without_hooks,
    old_release_without_hooks,
    many_nodes,
)


def _finding(
    code: str, subject: dict[str, str], message: str, *, level: Level = Level.ERROR, cause: str | None = None, hint: str | None = None
) -> Finding:
    return Finding(code, level, subject, message, cause, hint)
