"""Installs the stand-in's finder in every Python process that has this folder on PYTHONPATH, then runs the `sitecustomize` it hides.

Loads the finder by path, under a private name: `sglang_plug` need not be installed in that interpreter.
"""

import importlib.machinery
import importlib.util
import os
import sys

_HERE = os.path.dirname(os.path.abspath(__file__))
_FINDER = os.path.join(os.path.dirname(_HERE), "finder.py")


def _install_finder() -> None:
    spec = importlib.util.spec_from_file_location("_sglang_plug_standin_finder", _FINDER)
    if spec is None or spec.loader is None:
        raise ImportError(f"the stand-in's finder is missing: {_FINDER}")
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module  # so that another copy recognises its class by file
    spec.loader.exec_module(module)
    module.install()


def _run_hidden() -> None:
    """Run the `sitecustomize` that would have been found without this folder; there may be none."""
    others = [place for place in sys.path if os.path.realpath(place or os.curdir) != os.path.realpath(_HERE)]
    spec = importlib.machinery.PathFinder.find_spec("sitecustomize", others)
    if spec is None or spec.loader is None:
        return
    module = importlib.util.module_from_spec(spec)
    sys.modules["sitecustomize"] = module
    spec.loader.exec_module(module)


_install_finder()
_run_hidden()
