"""Where a release's source comes from: a version on the package index, a wheel, or a folder. Yields text; imports nothing."""

from __future__ import annotations

import re
import subprocess
import sys
import tempfile
import zipfile
import zlib
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from packaging.version import InvalidVersion, Version

from sglang_plug.errors import CatalogueError

if TYPE_CHECKING:
    from collections.abc import Iterator

_PLAIN = re.compile(r"^[0-9]+(\.[0-9]+)+[0-9A-Za-z.+!-]*$")
_LITERAL = re.compile(r"""^__version__\s*(?::\s*str\s*)?=\s*(?:version\s*=\s*)?["']([^"']+)["']""", re.MULTILINE)


@dataclass(frozen=True)
class SourceFile:
    """One file of the package. `content` is None for compiled modules."""

    module: str
    is_package: bool
    path: str
    content: bytes | None


@dataclass(frozen=True)
class SourceTree:
    """All modules of one release, sorted by path."""

    release: str
    files: tuple[SourceFile, ...]


@contextmanager
def opened(what: str, *, release: str | None = None) -> Iterator[SourceTree]:
    """Give the source of a version (downloaded with pip), a wheel, or a folder that holds `sglang/`.

    Args:
        what: `0.5.24`, `sglang-0.5.24-….whl`, or a path.
        release: the version to call it, where the source does not say.

    Raises:
        CatalogueError: it cannot be found, downloaded or read.
    """
    path = Path(what)
    if path.is_dir():
        yield read_folder(path, release=release)
    elif path.is_file():
        yield read_wheel(path, release=release)
    elif _PLAIN.match(what) and "/" not in what:
        with tempfile.TemporaryDirectory(prefix="sglang-plug-") as place:
            yield read_wheel(_download(what, Path(place)), release=release)
    else:
        raise CatalogueError(
            "no such release, wheel or folder", subject=what, hint="give a version such as 0.5.23, a wheel, or a folder with sglang/ in it"
        )


def _download(version: str, place: Path) -> Path:
    # sglang's wheels are built per interpreter; any of them has the same Python source
    base = [sys.executable, "-m", "pip", "download", "--no-deps", "--quiet", "--disable-pip-version-check", "--dest", str(place)]
    failed = ""
    for options in (
        [],
        [
            "--only-binary=:all:",
            "--python-version",
            "3.11",
            "--implementation",
            "cp",
            "--abi",
            "cp311",
            "--platform",
            "manylinux_2_34_x86_64",
        ],
    ):
        done = subprocess.run([*base, *options, f"sglang=={version}"], capture_output=True, text=True, check=False)
        wheels = sorted(place.glob("sglang-*.whl"))
        if done.returncode == 0 and wheels:
            return wheels[0]
        failed = done.stderr.strip() or f"pip ended with status {done.returncode} and left no wheel"
    raise CatalogueError(
        "pip cannot download this release",
        subject=f"sglang=={version}",
        cause=failed.splitlines()[-1],
        hint="look at `pip index versions sglang`, or give a wheel",
    )


def read_wheel(path: Path, *, release: str | None = None) -> SourceTree:
    """Return the modules of a wheel.

    Raises:
        CatalogueError: it is no wheel of sglang.
    """
    try:
        with zipfile.ZipFile(path) as archive:
            names = sorted(name for name in archive.namelist() if name.startswith("sglang/"))
            files = tuple(_files((name, lambda name=name: archive.read(name)) for name in names))
            metadata = next((name for name in archive.namelist() if name.endswith(".dist-info/METADATA")), None)
            found = release or (_metadata_version(archive.read(metadata)) if metadata else None)
    except (OSError, EOFError, zipfile.BadZipFile, zlib.error, NotImplementedError) as exc:
        raise CatalogueError(
            "this wheel cannot be read",
            subject=str(path),
            cause=str(exc),
            hint=f"download it again: `pip download --no-deps sglang=={release or 'VERSION'}`",
        ) from exc
    return _tree(str(path), files, found)


def read_folder(path: Path, *, release: str | None = None) -> SourceTree:
    """Return the modules of an unpacked package: site-packages, a checkout, or `sglang` itself.

    Raises:
        CatalogueError: there is no sglang in it, or its version is unknown.
    """
    for root in (path, path / "python", path.parent if path.name == "sglang" else path):
        if (root / "sglang").is_dir():
            break
    else:
        raise CatalogueError("no sglang package in this folder", subject=str(path), hint="give the folder that holds `sglang/`")
    names = sorted(file.relative_to(root).as_posix() for file in (root / "sglang").rglob("*") if file.suffix in {".py", ".so", ".pyd"})
    files = tuple(_files((name, lambda name=name: (root / name).read_bytes()) for name in names))
    return _tree(str(path), files, release or _folder_version(root))


def _files(entries: Iterator[tuple[str, object]]) -> Iterator[SourceFile]:
    for name, read in entries:
        stem, _, suffix = name.rpartition(".")
        if suffix == "py":
            parts = stem.split("/")
            is_package = parts[-1] == "__init__"
            module = ".".join(parts[:-1] if is_package else parts)
            content = read()  # type: ignore[operator]
            yield SourceFile(module, is_package, name, content)
        elif suffix in {"so", "pyd"} and "/" in name:
            folder, _, file = name.rpartition("/")
            yield SourceFile(f"{folder.replace('/', '.')}.{file.partition('.')[0]}", False, name, None)


def _tree(subject: str, files: tuple[SourceFile, ...], release: str | None) -> SourceTree:
    if not files:
        raise CatalogueError("no sglang package in it", subject=subject, hint="give a wheel of SGLang's own distribution, `sglang`")
    if release is None:
        raise CatalogueError("its version cannot be told from the source", subject=subject, hint="name it with `--release VERSION`")
    try:
        Version(release)
    except InvalidVersion as exc:
        raise CatalogueError(
            "its version is not one that can be ordered", subject=release, hint="name it with `--release VERSION`"
        ) from exc
    return SourceTree(release, files)


def _metadata_version(content: bytes) -> str | None:
    found = re.search(rb"^Version: (\S+)", content, re.MULTILINE)
    return found[1].decode() if found else None


def _folder_version(root: Path) -> str | None:
    for info in sorted(root.glob("sglang-*.dist-info/METADATA")):
        return _metadata_version(info.read_bytes())
    for name in ("_version.py", "version.py"):
        file = root / "sglang" / name
        found = _LITERAL.search(file.read_text(errors="replace")) if file.is_file() else None
        if found:
            return found[1]
    return None
