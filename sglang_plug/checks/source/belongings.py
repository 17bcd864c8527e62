"""The rule over a project's imports of itself: a module or name that its own source does not have. Looks at files; runs none."""

from __future__ import annotations

import difflib
import re
from dataclasses import dataclass
from functools import cached_property, lru_cache
from typing import TYPE_CHECKING

from sglang_plug.checks.model import Level
from sglang_plug.checks.source.found import found
from sglang_plug.contract.bindings import ModuleNames, absolute
from sglang_plug.contract.reading import read_module

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from sglang_plug.checks.model import Finding
    from sglang_plug.checks.source.facts import FileFacts, Import
    from sglang_plug.checks.source.plugin import Plugin
    from sglang_plug.checks.source.project import Project, PythonFile
    from sglang_plug.contract.catalogue import Release

_IMPORTED = re.compile(rb"^[ \t]*(?:from[ \t]+(\.*[\w.]*)[ \t]+import\b|import[ \t]+([\w.]+))", re.MULTILINE)
_GENERATED = re.compile(
    r"^_?_?(version|build_info|git|git_version|commit|about|config_generated)_*$|_pb2(_grpc)?$|^_?C$|_C$|_(ext|cext|rust|cuda)$"
)
_SAYING = (
    "pyproject.toml",
    "setup.cfg",
    "setup.py",
    "MANIFEST.in",
    ".gitignore",
    "Makefile",
    "CMakeLists.txt",
    "meson.build",
    "Cargo.toml",
)
_COMPILING = re.compile(r"maturin|scikit|mesonpy|Extension\(|ext_modules|cythonize|pybind11|CMake")
_OPEN = (b"sys.modules[", b"exec(", b"globals()")  # what is bound that way is not seen
_CLOSE = 0.75  # of difflib's measure


@dataclass(frozen=True)
class Gap:
    """What is not there: a module of a package, or a name of a module."""

    owner: str
    name: str
    near: str | None


class Belongings:
    """The project's own packages as they lie on disk."""

    def __init__(self, project: Project) -> None:
        self.project = project
        self._known: dict[str, Gap | Path | None] = {}
        self._names: dict[Path, ModuleNames | None] = {}

    @cached_property
    def tops(self) -> frozenset[str]:
        """Its top-level packages that have an `__init__.py`."""
        names = {(file.module or "").partition(".")[0] for file in self.project.files} - {"", "sglang"}
        return frozenset(name for name in names if any((root / name / "__init__.py").is_file() for root in self.project.roots))

    @cached_property
    def _said(self) -> str:
        """What its build files say: a module that they name may be made by the build."""
        places = (self.project.root / name for name in _SAYING)
        return "\n".join(place.read_text(encoding="utf-8", errors="replace") for place in places if place.is_file())

    def place(self, module: str) -> Gap | Path | None:
        """Return a module's file or folder, the gap where it is not there, or None where nobody can tell."""
        if module not in self._known:
            self._known[module] = self._find(module)
        return self._known[module]

    def _find(self, module: str) -> Gap | Path | None:
        first, *rest = module.split(".")
        folders = [root / first for root in self.project.roots if (root / first / "__init__.py").is_file()]
        if first not in self.tops or len(folders) != 1:
            return None
        here, owner = folders[0], first
        for index, name in enumerate(rest):
            if _extends_path(here):
                return None
            file = here / f"{name}.py"
            if not (here / name).is_dir():
                if file.is_file() and index == len(rest) - 1:
                    return file
                return self._gap(here, owner, name)
            here, owner = here / name, f"{owner}.{name}"
        return here

    def _gap(self, folder: Path, owner: str, name: str) -> Gap | None:
        entries = [entry.name for entry in folder.iterdir()]
        if any(entry.startswith(f"{name}.") and not entry.endswith(".py") for entry in entries):
            return None  # compiled, or to be
        stems = {entry.removesuffix(".py") for entry in entries if entry.endswith(".py") or (folder / entry).is_dir()}
        return self._judged(Gap(owner, name, _nearest(name, stems)))

    def _judged(self, gap: Gap) -> Gap | None:
        """The gap, where no build can be expected to fill it."""
        if _GENERATED.search(gap.name) or re.search(rf"\b{re.escape(gap.name)}\b", self._said):
            return None
        return None if gap.near is None and _COMPILING.search(self._said) else gap

    def name_gap(self, module: str, name: str) -> Gap | None:
        """Return the gap where a module of the project does not have a name, nor a submodule of it."""
        place = self.place(module)
        if place is None or isinstance(place, Gap):
            return place
        inner = self.place(f"{module}.{name}") if place.is_dir() else Gap(module, name, None)
        if not isinstance(inner, Gap):
            return None
        file = place / "__init__.py" if place.is_dir() else place
        names = self._bound(file)
        if names is None or name in names.names or name.startswith("__"):
            return None
        known = [other for other in (*names.names, inner.near) if other and not other.startswith("__")]
        return self._judged(Gap(module, name, _nearest(name, set(known))))

    def _bound(self, file: Path) -> ModuleNames | None:
        """What a module binds; None where reading does not tell all of it."""
        if file not in self._names:
            self._names[file] = None
            try:
                text = file.read_bytes()
                read = read_module(text, "", is_package=file.name == "__init__.py")
            except (OSError, SyntaxError, ValueError, RecursionError):
                return None
            open_ended = read.stars or read.dynamic or "__getattr__" in read.names or any(word in text for word in _OPEN)
            self._names[file] = None if open_ended else read
        return self._names[file]


def _extends_path(folder: Path) -> bool:
    try:
        return b"__path__" in (folder / "__init__.py").read_bytes()
    except OSError:
        return False


def _nearest(name: str, known: set[str]) -> str | None:
    return next(iter(difflib.get_close_matches(name, sorted(known), n=1, cutoff=_CLOSE)), None)


@lru_cache(maxsize=1)
def _own_gaps(plugin: Plugin) -> tuple[tuple[FileFacts, Import, Gap], ...]:
    """The imports of the project's own modules and names that its source does not have, whatever stands around them."""
    return tuple(_find_gaps(plugin))


def _find_gaps(plugin: Plugin) -> Iterator[tuple[FileFacts, Import, Gap]]:
    own = Belongings(plugin.project)
    read = {facts.file.path for facts in plugin.facts}
    others = [file for file in plugin.project.files if file.path not in read and file.module and _may_miss(own, file)]
    for facts in (*plugin.facts, *filter(None, (plugin.module(file.module or "") for file in others))):
        for item in facts.imports:
            if item.dotted.partition(".")[0] in own.tops:
                module = item.dotted.rpartition(".")[0] if item.is_from else item.dotted
                gap = own.place(module)
                if item.is_from and not isinstance(gap, Gap):
                    gap = own.name_gap(module, item.name) if "." in item.dotted else None
                if isinstance(gap, Gap):
                    yield facts, item, gap


def _may_miss(own: Belongings, file: PythonFile) -> bool:
    """True where a file that does not speak of SGLang imports a module of the project that is not there."""
    package = file.module if file.is_package else (file.module or "").rpartition(".")[0]
    for written, plain in _IMPORTED.findall(file.text):
        text = (written or plain).decode()
        level = len(text) - len(text.lstrip("."))
        module = absolute(package or "", text.lstrip(".") or None, level)
        if module.partition(".")[0] in own.tops and isinstance(own.place(module), Gap):
            return True
    return False


def missing_own(plugin: Plugin, release: Release) -> Iterator[Finding]:
    """SP712: an import of the project's own module, or of a name of it, that its source does not have."""
    for facts, item, gap in _own_gaps(plugin):
        if plugin.caught(item.guards, item.scope, "catches_imports") or not plugin.runs(item.guards, item.scope, release):
            continue
        whole = f"{gap.owner}.{gap.name}"
        message = f"{gap.owner} has no {gap.name}: this import of the project's own source fails"
        hint = f"did you mean {gap.owner}.{gap.near}?" if gap.near else "correct the name, or add the file to the source"
        level = None if gap.near else Level.WARNING
        yield found(
            "SP712",
            facts.file,
            item.alias if item.is_from and gap.name == item.name else item.node,
            whole,
            message,
            kind="import",
            hint=hint,
            level=level,
        )
