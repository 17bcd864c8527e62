"""What is installed here, from metadata alone: the interpreter, SGLang, and every entry point that SGLang would look at. Imports no plugin.

Entry points are enumerated as `importlib.metadata` enumerates them (same order, same de-duplication), but each file is read by our own
parser, so that one broken file is a fact about that file and not the end of the whole inspection.
"""

from __future__ import annotations

import importlib.metadata
import importlib.util
import os
import sys
from typing import Any

Row = dict[str, Any]
GROUPS = (
    "sglang.srt.platforms",
    "sglang.srt.plugins",
    "sglang.multimodal_gen.platforms",
    "sglang.multimodal_gen.plugins",
    "sglang.serve_backends",
)


def environment(request: dict[str, Any]) -> dict[str, Any]:
    """Return {"interpreter", "sglang", "entry_points", "distributions", "problems", "shadowed"}; see the functions below for each."""
    found = _scan(detail=bool(request.get("detail")))
    return {"interpreter": _interpreter(), "sglang": find_sglang(), **found}


def _interpreter() -> dict[str, Any]:
    return {
        "executable": sys.executable,
        "version": ".".join(map(str, sys.version_info[:3])),
        "implementation": sys.implementation.name,
        "prefix": sys.prefix,
        "base_prefix": sys.base_prefix,
        "path": list(sys.path),
        "cwd": os.getcwd(),
        "safe_path": bool(getattr(sys.flags, "safe_path", False)),
    }


def find_sglang() -> dict[str, Any]:
    """Return {"kind": "installed" | "source" | "directory" | "absent", "version", "origin", "metadata"} without importing sglang.

    `installed` has code and metadata, `source` has code only, `directory` is a bare folder of that name (no installation at all).
    """
    try:
        spec = importlib.util.find_spec("sglang")
    except (ImportError, ValueError):
        spec = None
    version = metadata_path = None
    try:
        dist = importlib.metadata.distribution("sglang")
        version, metadata_path = dist.version, str(getattr(dist, "_path", ""))
    except Exception:
        dist = None
    if spec is None:
        return {"kind": "absent", "version": version, "origin": None, "metadata": metadata_path}
    folders = [str(folder) for folder in spec.submodule_search_locations or ()]
    origin = spec.origin if spec.origin and spec.has_location else (folders[0] if folders else None)
    real = bool(spec.has_location) and any(os.path.isdir(os.path.join(folder, "srt")) for folder in folders)
    if not real:
        return {"kind": "directory", "version": version, "origin": origin, "metadata": metadata_path}
    kind = "installed" if metadata_path else "source"
    return {"kind": kind, "version": version or _version_in_source(folders), "origin": origin, "metadata": metadata_path}


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
    seen: dict[str, Row] = {}
    backends: list[str] = []
    for dist in importlib.metadata.distributions():
        key = _key(dist, problems)
        text, trouble = _entry_points_text(dist)
        ours = "sgl" in text.lower()
        if key in seen:
            if ours or seen[key]["ours"]:
                shadowed.append({**_identity(dist), "by": seen[key]["where"], "entries": _relevant(parse(text)[0])})
            continue
        seen[key] = {"ours": ours, "where": _where(dist)}
        rows, bad = parse(text)
        if trouble or bad:
            whose = {"path": os.path.join(_where(dist), "entry_points.txt"), "dist": _identity(dist)["name"]}
            problems += [{**fact, **whose} for fact in trouble + bad]
        backends += [row["name"] for row in rows if row["group"] == "torch.backends"]
        rows = _relevant(rows)
        if rows:
            identity = _identity(dist)
            relevant.append({**identity, **(_details(dist) if detail else {})})
            entries += [{**row, "dist": identity["name"], "version": identity["version"], "where": identity["where"]} for row in rows]
    _TORCH_BACKENDS.append(backends)
    return {"entry_points": entries, "distributions": relevant, "problems": problems, "shadowed": shadowed, "scanned": len(seen)}


def _key(dist: Any, problems: list[Row]) -> str:
    """The name under which `importlib.metadata` de-duplicates."""
    try:
        return str(dist._normalized_name)
    except Exception as exc:  # metadata without a name: the host fails on it as well, or takes None, by its version
        problems.append(
            {"kind": "nameless", "fatal": False, "line": None, "text": "", "why": repr(exc), "path": _where(dist), "dist": None}
        )
        return "nameless:" + _where(dist)


def _where(dist: Any) -> str:
    return str(getattr(dist, "_path", "") or repr(dist))


def _entry_points_text(dist: Any) -> tuple[str, list[Row]]:
    """Return (text, problems) of a distribution's entry-point file."""
    path = getattr(dist, "_path", None)
    if path is None:
        return dist.read_text("entry_points.txt") or "", []
    try:
        data = path.joinpath("entry_points.txt").read_bytes()
    except (OSError, KeyError):
        return "", []  # as the host: a missing or unreadable file is an empty one
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
    return [row for row in rows if row["group"] in GROUPS or "sgl" in row["group"].lower()]


def _identity(dist: Any) -> Row:
    """Return {"name", "version", "where"}; a name that metadata does not give is None, as for the host."""
    try:
        metadata = dist.metadata
        name, version = metadata["Name"], metadata["Version"]
    except Exception:  # unreadable METADATA: the entry points are still there
        name = version = None
    return {"name": name, "version": version, "where": _where(dist)}


def _details(dist: Any) -> Row:
    """Facts that only doctor needs: {"editable", "url", "record", "missing", "pth", "installer", "requires"}."""
    import json

    facts: Row = {
        "editable": False,
        "url": None,
        "record": False,
        "missing": [],
        "pth": [],
        "requires": [],
        "requires_python": None,
        "top_level": [],
    }
    try:
        direct = json.loads(dist.read_text("direct_url.json") or "{}")
        facts["editable"] = bool(direct.get("dir_info", {}).get("editable"))
        facts["url"] = direct.get("url")
    except ValueError:
        facts["url"] = "unreadable direct_url.json"
    facts["record"] = bool(dist.read_text("RECORD"))
    facts["top_level"] = (dist.read_text("top_level.txt") or "").split()
    facts["requires"] = list(dist.requires or ())
    facts["requires_python"] = dist.metadata["Requires-Python"]
    for file in (dist.files or ()) if facts["record"] else ():
        path = str(dist.locate_file(file))
        if path.endswith(".pth"):
            facts["pth"].append({"path": path, "code": _code_lines(path)})
        if path.endswith(".py") and not os.path.exists(path) and len(facts["missing"]) < 20:
            facts["missing"].append(path)
    return facts


def _code_lines(path: str) -> list[str]:
    try:
        with open(path, encoding="utf-8", errors="replace") as file:
            return [line.strip()[:300] for line in file if line.startswith(("import ", "import\t"))]
    except OSError:
        return []
