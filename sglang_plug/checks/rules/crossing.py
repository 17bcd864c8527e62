"""SP519 to SP521, SP529, SP6xx: plugins among each other, and what the runtime makes of all of them together."""

from __future__ import annotations

from collections import defaultdict
from typing import TYPE_CHECKING, Any

from sglang_plug.checks.model import Level, Location
from sglang_plug.checks.rules.hooks import told
from sglang_plug.checks.world import Entry, World, cause_of, find, names, variable
from sglang_plug.core.words import a

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from sglang_plug.checks.model import Finding


def _by_target(world: World, runtime: str) -> dict[str, list[tuple[Entry, Mapping[str, Any]]]]:
    found: dict[str, list[tuple[Entry, Mapping[str, Any]]]] = defaultdict(list)
    for entry, hook, _ in world.hooked(runtime):
        if entry.host and not entry.failed:
            found[str(hook["target"]).replace(":", ".", 1)].append((entry, hook))
    return found


def several(world: World) -> Iterator[Finding]:
    """SP519, SP520: no priority decides; the order is that of the metadata."""
    for runtime in world.runtimes:
        for target, rows in _by_target(world, runtime).items():
            subject = {"kind": "hook", "name": target, "target": target, "runtime": runtime}
            replacing = [entry for entry, hook in rows if hook["type"] == "replace"]
            owners = list(dict.fromkeys(f"{entry.name} ({entry.dist})" for entry in replacing))
            if len(replacing) > 1:
                yield find(
                    "SP519",
                    subject,
                    f"{target} is replaced {len(replacing)} times, by {' and '.join(owners)}: the last one wins, here "
                    f"{replacing[-1].name}; the order follows the installation, not a setting",
                    hint=f"keep one: export SGLANG_PLUGINS={replacing[-1].name}",
                )
            around = list(dict.fromkeys(entry.name for entry, hook in rows if hook["type"] == "around"))
            if len(around) > 1:
                yield find(
                    "SP520",
                    subject,
                    f"{target} is wrapped by {names(around)}, outermost last: one that does not call the original bypasses those inside",
                    hint="their order follows the installation, not a setting",
                )


def replace_overrides_class(world: World) -> Iterator[Finding]:
    """SP521: the replacement class has its own version of the method."""
    for runtime in world.runtimes:
        found = _by_target(world, runtime)
        classes = {target: rows for target, rows in found.items() if any(hook["hook"]["kind"] == "class" for _, hook in rows)}
        for target, rows in found.items():
            owner = target.rpartition(".")[0]
            methods = [(entry, hook) for entry, hook in rows if hook["type"] == "replace" and hook["hook"]["kind"] != "class"]
            if owner in classes and methods:
                entry, hook = methods[0]
                yield find(
                    "SP521",
                    {"kind": "hook", "name": target, "target": target, "runtime": runtime},
                    f"{told(entry, hook)} also overrides the method in the class that '{classes[owner][0][0].name}' puts in place "
                    f"of {owner}",
                    hint="use AROUND, or change the replacement class",
                )


def not_applied(world: World) -> Iterator[Finding]:
    """SP529: none of the other rules says why."""
    for runtime in world.runtimes:
        log = ((world.rehearsal.get("together", {}).get(runtime) or {}).get("value") or {}).get("log", [])
        failures = {record["message"].rpartition(" ")[2]: record["error"] for record in log if "error" in record}
        seen = set()
        for entry, hook, target in world.hooked(runtime):
            name = hook["target"]
            if hook.get("late"):
                yield find(
                    "SP529",
                    entry.subject() | {"kind": "hook", "target": name},
                    f"{told(entry, hook)} is registered after hooks were applied to its target: it never runs",
                    cause="SGLang patches a target once",
                    hint="register all hooks first, and leave HookRegistry.apply_hooks() to SGLang",
                )
            if target is None or target.get("patched") or target.get("error") or name in seen or not entry.host:
                continue
            if target.get("kind") == "class" and any(row["type"] != "replace" for row in target.get("hooks", ())):
                continue  # told as a class hook of a wrong type
            seen.add(name)
            error = failures.get(name)
            yield find(
                "SP529",
                entry.subject() | {"kind": "hook", "target": name},
                f"{told(entry, hook)} was not applied" + (f": {error['type']}" if error else ""),
                cause=cause_of(error) if error else "it was registered too late, or SGLang gave up before",
                hint="a built-in or extension type cannot be patched" if target.get("immutable") else "sglang-plug doctor --verbose",
            )


def own_hooks_skipped(world: World) -> Iterator[Finding]:
    """SP601: SRT works out the skipped distributions from names, not from the selected one."""
    selected = world.settings.platform
    if not selected or "srt" not in world.runtimes:
        return
    platforms = world.of("platform", "srt")
    dist = next((entry.row["dist"] for entry in platforms if entry.name == selected), None)
    others = [entry.name for entry in platforms if entry.row["dist"] == dist and entry.name != selected]
    lost = [entry.name for entry in world.of("hook plugin", "srt") if entry.row["dist"] == dist]
    if dist is not None and others and lost:
        yield find(
            "SP601",
            variable("SGLANG_PLATFORM", selected),
            f"{dist} provides the platforms '{selected}' and {names(others)}; with SGLANG_PLATFORM={selected} SRT skips the package's own "
            f"hooks: {names(lost)}",
            cause="SRT skips every distribution that has a platform with another name, the selected one's included",
            hint="unset SGLANG_PLATFORM, or give each platform a package of its own",
        )


def inactive_vendor_hooks(world: World) -> Iterator[Finding]:
    """SP602: SRT skips them only where a platform is selected by name."""
    if world.settings.platform or "srt" not in world.runtimes:
        return
    decision = world.decisions.get("srt")
    chosen = decision.resolution.dist if decision is not None and decision.resolution.outcome == "plugin" else None
    for entry in world.of("hook plugin", "srt"):
        own = [p for p in world.of("platform", "srt") if p.row["dist"] == entry.row["dist"] and p.row["dist"] is not None]
        absent = [p for p in own if (p.report.get("returned") or {}).get("type") == "NoneType"]  # one that failed is told as such
        if absent and absent == own and entry.host and not entry.failed and entry.row["dist"] != chosen:
            select = decision.resolution.name if decision is not None and decision.resolution.outcome == "plugin" else None
            yield find(
                "SP602",
                entry.subject(),
                f"{entry.label} runs although its package's platform {names([p.name for p in own])} is not active here",
                cause="SRT skips hooks of other vendors only while SGLANG_PLATFORM is set",
                hint=f"export SGLANG_PLATFORM={select}" if select else "list the hooks that you want in SGLANG_PLUGINS",
            )


def not_examined(world: World) -> Iterator[Finding]:
    """SP603: what the host leaves alone, doctor leaves alone."""
    for entry in world.entries:
        if entry.runtime in world.runtimes and not entry.tried and entry.skipped:
            yield find(
                "SP603",
                entry.subject(),
                f"{entry.label} was not run, as SGLang does not run it here: {entry.skipped}",
                hint=f"to examine it all the same: sglang-plug doctor {entry.name}",
            )
        elif entry.kind == "hook plugin" and entry.tried and entry.host and entry.trial is None and _host_fails(world, entry.runtime):
            yield find(
                "SP603",
                entry.subject(),
                f"{entry.label} was not run: {entry.runtime} ends before it loads hook plugins, as no platform can be had",
                hint="repair what is told of the platforms first",
            )
        elif entry.tried and entry.host and entry.trial is None and _went_on_without(world, entry.runtime):
            yield find(
                "SP603",
                entry.subject(),
                f"{entry.label} was not run: the dry run went on without the platform that it belongs to, which would spoil what follows",
                hint=f"sglang-plug doctor {entry.name}",
                level=Level.WARNING,
            )


def _host_fails(world: World, runtime: str) -> bool:
    """True where the host ended while it chose its platform."""
    verdict = world.rehearsal.get("verdict", {}).get(runtime)
    value = (verdict or {}).get("value")
    return verdict is not None and (value is None or "error" in value["phases"]["host"])


def _went_on_without(world: World, runtime: str) -> bool:
    """True where the rehearsal's main process took a built-in platform in place of the plugin's that the host chose."""
    verdict = world.rehearsal.get("verdict", {}).get(runtime) or {}
    decision = world.decisions.get(runtime)
    return verdict.get("continued") == "builtin" and decision is not None and decision.resolution.outcome == "plugin"


def bad_backend(world: World) -> Iterator[Finding]:
    """SP605: told when selected, which may be long after the installation."""
    for entry in world.tried:
        report = entry.report
        if entry.kind != "serve backend" or "returned" not in report:
            continue
        callback = report.get("callback") or {}
        location = Location(callback["file"], callback["line"]) if callback.get("file") else None
        if "is_backend" not in report and not world.real:
            yield find(
                "SP605",
                entry.subject(),
                f"{entry.label}: its factory returned {a(report['returned']['type'])}; whether SGLang takes that is not checked on the "
                "stand-in, which has no ServeBackend",
                hint="sglang-plug doctor --python /path/to/python, with SGLang installed there",
                location=location,
                level=Level.INFO,
            )
        elif not report.get("is_backend", True):
            yield find(
                "SP605",
                entry.subject(),
                f"{entry.label}: its factory returned {a(report['returned']['type'])}, not a ServeBackend: selecting it fails",
                hint="from sglang.cli.serve_backends import ServeBackend; return ServeBackend(api_version=1, run=…)",
                location=location,
            )
        elif report["version"] != report.get("expected_version", report["version"]):
            yield find(
                "SP605",
                entry.subject(),
                f"{entry.label} speaks API version {report['version']}, and {world.host_name} takes {report['expected_version']}",
                hint="install a release of the package for this SGLang",
                location=location,
            )


RULES = (
    several,
    replace_overrides_class,
    not_applied,
    own_hooks_skipped,
    inactive_vendor_hooks,
    not_examined,
    bad_backend,
)
