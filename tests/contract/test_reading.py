"""Reading held against two witnesses: what the standard library's modules really hold when imported, and what griffe reads."""

from __future__ import annotations

import importlib
import inspect
import types
from pathlib import Path

import pytest

from sglang_plug.contract.reading import read_module

MODULES = [
    "argparse", "asyncio.base_events", "asyncio.tasks", "calendar", "cmd", "collections", "concurrent.futures.process", "configparser",
    "contextlib", "copy", "csv", "dataclasses", "difflib", "email.message", "enum", "fractions", "functools", "heapq", "http.server",
    "importlib.metadata", "inspect", "json.decoder", "logging", "logging.handlers", "multiprocessing.context", "pathlib", "pickle", "queue",
    "random", "selectors", "shutil", "subprocess", "tempfile", "textwrap", "threading", "traceback", "typing", "unittest.mock", "uuid", "weakref",  # noqa: E501 - a row of a table
]  # fmt: skip
_WORDS = ("name", "doc", "package", "loader", "spec", "file", "cached", "builtins", "path", "annotations")
_IMPLICIT = {f"__{word}__" for word in _WORDS}


def read(name: str):
    module = importlib.import_module(name)
    path = Path(module.__file__)
    return module, read_module(path.read_bytes(), name, is_package=path.name == "__init__.py")


@pytest.mark.parametrize("name", MODULES)
def test_every_name_of_a_real_module_is_read(name: str):
    module, found = read(name)
    real = {key for key, value in vars(module).items() if key not in _IMPLICIT and not isinstance(value, types.ModuleType)}
    missing = real - set(found.names)
    if found.stars or found.dynamic:
        missing = (
            {key for key in missing if not any(hasattr(importlib.import_module(star), key) for star in found.stars)}
            if found.stars
            else set()
        )
    assert not missing


@pytest.mark.parametrize("name", MODULES)
def test_no_certain_name_is_invented(name: str):
    module, found = read(name)
    certain = {key for key, binding in found.names.items() if not binding.maybe and binding.code != "i"}
    invented = {key for key in certain if not hasattr(module, key)}
    assert not invented


@pytest.mark.parametrize("name", MODULES)
def test_parameters_agree_with_inspect(name: str):
    from sglang_plug.contract.model import parse_signature

    module, found = read(name)
    for key, binding in found.names.items():
        value = getattr(module, key, None)
        plain = isinstance(value, types.FunctionType) and not hasattr(value, "__wrapped__") and value.__module__ == name
        if binding.code == "f" and plain and not binding.varies and not binding.decorators and value.__name__ == key:
            told = [(p.name, p.required) for p in parse_signature(binding.text)]
            real = [
                (p.name, p.default is p.empty and not p.kind.name.startswith("VAR_")) for p in inspect.signature(value).parameters.values()
            ]
            assert told == real, key
            assert ("g" in binding.flags) == (inspect.isgeneratorfunction(value) or inspect.isasyncgenfunction(value)), key
            assert ("a" in binding.flags) == (inspect.iscoroutinefunction(value) or inspect.isasyncgenfunction(value)), key


@pytest.mark.parametrize("name", ["argparse", "http.server", "logging", "pathlib", "threading"])
def test_griffe_reads_the_same_classes(name: str):
    import griffe

    module, found = read(name)
    path = Path(module.__file__)
    witness = griffe.visit(name, filepath=path, code=path.read_text())
    for key, member in witness.members.items():
        if member.is_alias or not member.is_class or key not in found.names:
            continue
        ours = found.names[key]
        assert ours.code == "c"
        theirs = {child for child, value in member.members.items() if not value.is_alias and value.is_function}
        mangled = {f"_{key.lstrip('_')}{child}" if child.startswith("__") and not child.endswith("__") else child for child in theirs}
        assert mangled <= set(ours.members), key
