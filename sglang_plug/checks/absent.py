"""What to do about an import that fails: never names a distribution to install, since an import name does not tell which one."""

from __future__ import annotations

import re
import sys
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Mapping


def import_hint(root: Mapping[str, Any], own: str, prefix: str) -> str | None:
    """Return the hint for a failing import; None where its place is not known either.

    Args:
        root: the facts of the root exception.
        own: a module of the plugin, which tells its package.
        prefix: of the interpreter.
    """
    module = str(root.get("module") or "")
    parent, _, _ = module.rpartition(".")
    if root.get("type", "").rpartition(".")[2] == "ModuleNotFoundError" and module:
        near = root.get("near") or []
        meant = f"; did you mean {near[0]}?" if near else ""
        if parent:
            return f"there is no module {module} in {parent}{meant or '; correct the import, or add the file'}"
        if module == own.partition(".")[0]:
            return f"there is no module {module}{meant or '; reinstall the plugin from its source'}"
        return f"install the package that provides '{module}' (import name) in {prefix}"
    place = root.get("place") or {}
    spot = f"{place['file']}:{place['line']}" if place.get("file") and place.get("line") else place.get("file")
    if root.get("library"):
        lacking = re.match(r"(\S+): cannot open shared object file", str(root["message"]))
        if lacking:
            return f"install the library {lacking[1]}, or add its folder to LD_LIBRARY_PATH"
        return f"rebuild {root['library']} for this Python, or reinstall what brought it"
    if root.get("cycle"):
        return f"{spot} and {module} import each other: import {root['wanted']} inside the function that uses it"
    if root.get("wanted") and module.partition(".")[0] in sys.stdlib_module_names:
        return f"{module} of this Python has no {root['wanted']}: a later Python may, or correct {spot}"
    if root.get("wanted"):
        meant = f"did you mean {root['meant'][0]}?" if root.get("meant") else f"correct {spot}, or define it"
        return f"there is no {root['wanted']} in {module}; {meant}"
    return f"correct {spot}" if spot else None
