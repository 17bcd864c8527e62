"""What is installed here, from metadata alone: the interpreter, SGLang, and every entry point that SGLang would look at. Imports no plugin.

Entry points are enumerated as `importlib.metadata` enumerates them (same order, same de-duplication), but each file is read by our own
parser, so that one broken file is a fact about that file and not the end of the whole inspection.
"""

from __future__ import annotations

import importlib.util
import os
import sys

from .distributions import Distribution, distributions

TYPE_CHECKING = False  # typing costs more to import than all of this file
if TYPE_CHECKING:
    from typing import Any

    Row = dict[str, Any]


GROUPS = (
    "sglang.srt.platforms",
    "sglang.srt.plugins",
    "sglang.multimodal_gen.platforms",
    "sglang.multimodal_gen.plugins",
    "sglang.serve_backends",
)


_MARKS = ("sgl", "glang", "srt.p", "multimodal_gen")  # what makes a group, misspelt ones included, look like one of SGLang's


def environment(request: dict[str, Any]) -> dict[str, Any]:
    """Return {"interpreter", "sglang", "entry_points", "distributions", "problems", "shadowed"}; see the functions below for each."""
    return {"interpreter": _interpreter(), **_scan(detail=bool(request.get("detail")))}


def _interpreter() -> dict[str, Any]:
    return {
        "executable": sys.executable,
        "version": ".".join(map(str, sys.version_info[:3])),
        "implementation": sys.implementation.name,
        "prefix": sys.prefix,
        "base_prefix": sys.base_prefix,
        "path": list(sys.path),
        "cwd": os.getcwd(),
        "frozen": bool(getattr(sys, "frozen", False)),
        "safe_path": bool(getattr(sys.flags, "safe_path", False)),
    }


def find_sglang(metadata: str | None) -> dict[str, Any]:
    """Return {"kind": "installed" | "source" | "directory" | "absent", "version", "origin", "metadata"} without importing sglang.

    `installed` has code and metadata, `source` has code only, `directory` is a bare folder of that name (no installation at all).

    Args:
        metadata: the metadata folder of the distribution `sglang`, where there is one.
    """
    try:
        spec = importlib.util.find_spec("sglang")
    except (ImportError, ValueError):
        spec = None
    version = Distribution(metadata, "sglang").identity()["version"] if metadata else None
    if spec is None:
        return {"kind": "absent", "version": version, "origin": None, "metadata": metadata}
    folders = [str(folder) for folder in spec.submodule_search_locations or ()]
    origin = spec.origin if spec.origin and spec.has_location else (folders[0] if folders else None)
    real = bool(spec.has_location) and any(os.path.isdir(os.path.join(folder, "srt")) for folder in folders)
    if not real:
        return {"kind": "directory", "version": version, "origin": origin, "metadata": metadata}
    kind = "installed" if metadata else "source"
    return {"kind": kind, "version": version or _version_in_source(folders), "origin": origin, "metadata": metadata}


def _version_in_source(folders: list[str]) -> str | None:
    import re

    for folder in folders:
        for name in ("_version.py", "version.py"):
            try:
                with open(os.path.join(folder, name), encoding="utf-8", errors="replace") as file:
                    match = re.search(r"""^(?:__version__|version)\s*(?::[^=]+)?=\s*['"]([^'"]+)""", file.read(1 << 16), re.MULTILINE)
            except OSError:
                continue
            if match:
                return match.group(1)
    return None


_TORCH_BACKENDS: list[list[str]] = []  # filled by each scan of this process


def torch_backends() -> list[str]:
    """Return the packages that torch imports when it is imported itself (group `torch.backends`)."""
    if os.environ.get("TORCH_DEVICE_BACKEND_AUTOLOAD", "1") == "0":
        return []
    if not _TORCH_BACKENDS:
        _scan(detail=False)
    return _TORCH_BACKENDS[-1]


# --- distributions ----------------------------------------------------------------------------------------------------------------


def _scan(*, detail: bool) -> dict[str, Any]:
    entries: list[Row] = []
    problems: list[Row] = []
    shadowed: list[Row] = []
    relevant: list[Row] = []
    backends: list[str] = []
    seen: dict[str, Row] = {}
    for dist in distributions():
        text, trouble = _decode(dist.read("entry_points.txt"))
        rows, bad = parse(text)
        ours = bool(_relevant(rows))
        if dist.key in seen:
            if ours or seen[dist.key]["ours"]:
                shadowed.append({**dist.identity(), "by": seen[dist.key]["where"], "entries": _relevant(rows)})
            continue
        seen[dist.key] = {"ours": ours, "where": dist.path}
        if trouble or bad:
            whose = {"path": os.path.join(dist.path, "entry_points.txt"), "dist": dist.identity()["name"]}
            problems += [{**fact, **whose} for fact in trouble + bad]
        backends += [row["name"] for row in rows if row["group"] == "torch.backends"]
        rows = _relevant(rows)
        if rows:
            identity = dist.identity()
            if identity["name"] is None:
                problems.append(_nameless(dist.path))
            relevant.append({**identity, **(_details(dist.path) if detail else {})})
            entries += [{**row, "dist": identity["name"], "version": identity["version"], "where": identity["where"]} for row in rows]
    _TORCH_BACKENDS.append(backends)
    found = {"entry_points": entries, "distributions": relevant, "problems": problems, "shadowed": shadowed, "scanned": len(seen)}
    return {**found, "sglang": find_sglang(seen.get("sglang", {}).get("where"))}


def _nameless(path: str) -> Row:
    why = "has entry points but no Name in its METADATA"
    return {"kind": "nameless", "fatal": False, "line": None, "text": "", "why": why, "path": path, "dist": None}


def _decode(data: bytes) -> tuple[str, list[Row]]:
    """Return (text, problems) of an entry-point file."""
    try:
        return data.decode("utf-8"), []
    except UnicodeDecodeError as exc:
        line = data[: exc.start].count(b"\n") + 1
        fact = {"kind": "encoding", "fatal": True, "line": line, "text": repr(data[exc.start : exc.start + 20]), "why": str(exc)}
        return data.decode("utf-8", "replace"), [fact]


def parse(text: str) -> tuple[list[Row], list[Row]]:
    """Read an entry-point file as the host does; return (rows, problems).

    A row is {"group", "name", "value", "line"}, duplicates kept. A problem is {"kind", "fatal", "line", "text", "why"}: `fatal` ones make
    `importlib.metadata.entry_points()` raise for every package of the environment.
    """
    rows: list[Row] = []
    problems: list[Row] = []
    group: str | None = None
    for number, raw in enumerate(text.splitlines(), 1):
        line = raw.strip()
        if not line or line.startswith("#"):
            continue
        if line.startswith("[") and line.endswith("]"):
            group = line.strip("[]")
        elif group is None:
            bom = line.startswith("\ufeff")
            why = "a byte-order mark hides the section header" if bom else "stands before any [section] and is ignored"
            problems.append({"kind": "bom" if bom else "sectionless", "fatal": False, "line": number, "text": raw, "why": why})
        elif "=" not in line:
            problems.append({"kind": "no_equals", "fatal": True, "line": number, "text": raw, "why": "has no '='"})
        else:
            name, value = (part.strip() for part in line.split("=", 1))
            rows.append({"group": group, "name": name, "value": value, "line": number})
    return rows, problems


def _relevant(rows: list[Row]) -> list[Row]:
    return [row for row in rows if row["group"] in GROUPS or any(mark in row["group"].lower() for mark in _MARKS)]


def _details(path: str) -> Row:
    """Facts that only doctor needs: {"editable", "url", "record", "missing", "pth", "installer", "requires"}."""
    import json
    import pathlib
    from importlib.metadata import PathDistribution

    dist = PathDistribution(pathlib.Path(path))

    facts: Row = {
        "editable": False,
        "url": None,
        "record": False,
        "missing": [],
        "pth": [],
        "requires": [],
        "installed": {},
        "requires_python": None,
        "top_level": [],
    }
    try:
        direct = json.loads(dist.read_text("direct_url.json") or "{}")
        facts["editable"] = bool(direct.get("dir_info", {}).get("editable"))
        facts["url"] = direct.get("url")
    except (ValueError, AttributeError):  # no JSON, or none of that shape
        facts["url"] = "unreadable direct_url.json"
    try:
        facts["record"] = bool(dist.read_text("RECORD"))
        facts["top_level"] = (dist.read_text("top_level.txt") or "").split()
        facts["requires"] = list(dist.requires or ())
        facts["requires_python"] = dist.metadata["Requires-Python"]
        files = list(dist.files or ()) if facts["record"] else []
    except Exception as exc:  # files that no installer wrote: importlib's own reader may fail in any way
        return {**facts, "unreadable": f"{type(exc).__name__}: {exc}"}
    facts["installed"] = _versions(facts["requires"])
    for file in files:
        path = str(dist.locate_file(file))
        if path.endswith(".pth"):
            facts["pth"].append({"path": path, "code": _code_lines(path)})
        if path.endswith(".py") and not os.path.exists(path) and len(facts["missing"]) < 20:
            facts["missing"].append(path)
    return facts


def _versions(requires: list[str]) -> dict[str, str]:
    """Return the installed versions of what is required and often a vendor's own build."""
    import re

    found = {}
    for text in requires:
        match = re.match(r"[A-Za-z0-9._-]+", text)
        name = re.sub(r"[-_.]+", "-", match.group()).lower() if match else ""
        if name in ("torch", "torchvision", "torchaudio", "numpy", "triton", "sgl-kernel"):
            try:
                found[name] = importlib.metadata.version(name)
            except importlib.metadata.PackageNotFoundError:
                continue
    return found


def _code_lines(path: str) -> list[str]:
    try:
        with open(path, encoding="utf-8", errors="replace") as file:
            return [line.strip()[:300] for line in file if line.startswith(("import ", "import\t"))]
    except OSError:
        return []
