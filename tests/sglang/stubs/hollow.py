"""Hollow packages: importable, full of names, and empty inside.

SGLang imports triton and torchvision at module scope, and calls neither when it serves text on a CPU. A hollow package answers every
import and every attribute, so that those modules load; the few facts that somebody really reads are given by name.
"""

import importlib.abc
import importlib.machinery
import sys
import types


class Hollow(types.ModuleType):
    """A module in which every name exists. As a callable it is a decorator that changes nothing."""

    def __getattr__(self, name):
        if name.startswith("__"):
            raise AttributeError(name)
        inner = sys.modules.get(f"{self.__name__}.{name}")
        if inner is None:
            # A capital letter: somebody will subclass it or use it in an annotation.
            inner = type(name, (), {"__init__": _ignore}) if name[:1].isupper() else _hollow(f"{self.__name__}.{name}")
        self.__dict__[name] = inner
        return inner

    def __call__(self, *args, **kwargs):
        if len(args) == 1 and not kwargs and callable(args[0]):
            return args[0]
        return lambda function: function


class _Importer(importlib.abc.MetaPathFinder, importlib.abc.Loader):
    """Answers imports below one root."""

    def __init__(self, root):
        self._below = f"{root}."

    def find_spec(self, fullname, path=None, target=None):
        return importlib.machinery.ModuleSpec(fullname, self, is_package=True) if fullname.startswith(self._below) else None

    def create_module(self, spec):
        return _hollow(spec.name)

    def exec_module(self, module):
        """There is nothing to run."""


def _ignore(self, *args, **kwargs):
    """Accept any construction."""


def _hollow(name):
    module = Hollow(name)
    module.__path__ = []
    return module


def hollow_out(root, **facts):
    """Turn the package `root`, which is being imported, into a hollow one that knows `facts`."""
    package = sys.modules[root]
    package.__class__ = Hollow
    package.__dict__.update(facts)
    sys.meta_path.append(_Importer(root))
