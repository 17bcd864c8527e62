"""A name that imports what it stands for at its first use."""

from __future__ import annotations

from importlib import import_module
from typing import Any


class LazyImport:
    """Stands for `module.name` and imports it when it is called or asked for an attribute."""

    def __init__(self, module_name: str, class_name: str) -> None:
        self.module_name, self.class_name = module_name, class_name

    def _load(self) -> Any:
        # Looked up each time: a hook may have replaced the class since.
        return getattr(import_module(self.module_name), self.class_name)

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__") and name.endswith("__"):  # inspection and copying ask for these; they must not start an import
            raise AttributeError(name)
        return getattr(self._load(), name)

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        return self._load()(*args, **kwargs)

    def __repr__(self) -> str:
        return f"<lazy {self.module_name}.{self.class_name}>"
