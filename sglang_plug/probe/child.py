"""The probe's child: run by path with any Python >= 3.10, it answers JSON requests over one private socket until that is closed.

    PYTHON child.py FD LAUNCH

This process runs nobody's code but the interpreter's own start-up (`.pth` files, sitecustomize): plugins run in forks of it
(`inside/isolation.py`), or where that cannot be in interpreters of their own, which start here too (`inside/spawning.py`).
It needs nothing but this folder and `core/detect.py`, which stands alone, so that the tool need not be installed where it looks.
"""

from __future__ import annotations

import importlib
import importlib.util
import os
import sys
from typing import Any

PACKAGE = "_sglang_plug_probe"


def load_inside(folder: str, name: str) -> Any:
    """Import a module of the folder `inside` under a name of its own, so that neither sys.path nor a stranger's module name is touched."""
    init = os.path.join(folder, "__init__.py")
    spec = importlib.util.spec_from_file_location(PACKAGE, init, submodule_search_locations=[folder])
    if spec is None or spec.loader is None:
        raise ImportError(init + " cannot be loaded")
    module = importlib.util.module_from_spec(spec)
    sys.modules[PACKAGE] = module
    spec.loader.exec_module(module)
    return importlib.import_module(PACKAGE + "." + name)


def main(argv: list[str]) -> None:
    """Serve until the other end closes the socket."""
    if sys.version_info < (3, 10):
        sys.stderr.write("Python %d.%d is too old: SGLang and this probe need 3.10\n" % sys.version_info[:2])
        raise SystemExit(4)
    here = os.path.dirname(os.path.abspath(__file__))
    if sys.path and os.path.abspath(sys.path[0]) == here:
        del sys.path[0]  # our own folder, which no launch of SGLang has on its path
    inside = os.path.join(here, "inside")
    if argv[1] in ("supervise", "subject"):
        load_inside(inside, "spawning").main(argv[1], argv[2])
    else:
        load_inside(inside, "service").serve(int(argv[1]), launch=argv[2])


if __name__ == "__main__":
    main(sys.argv)
