"""Files put in their place, all of them or none. Owns every write of a generated package; overwrites nothing that it was not told to."""

from __future__ import annotations

import contextlib
import errno
import os
import secrets
import shutil
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from sglang_plug.errors import ScaffoldError

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterator, Mapping


@dataclass(frozen=True)
class Plan:
    """What writing would do, found out without writing.

    Attributes:
        target: the folder.
        create: files that are not there yet.
        change: files that are there with another content.
        keep: files that are there already, letter by letter.
        strangers: how many other files the folder holds.
    """

    target: Path
    create: tuple[str, ...]
    change: tuple[str, ...]
    keep: tuple[str, ...]
    strangers: int


def plan(files: Mapping[str, str], target: Path) -> Plan:
    """Compare `files` with what is at `target`.

    Raises:
        ScaffoldError: the target, or a folder in it that would be written to, is a symbolic link or no folder.
    """
    with _told(target):
        if target.is_symlink():
            raise ScaffoldError(
                "the target is a symbolic link", subject=str(target), cause=f"it points to {os.readlink(target)}", hint=_REAL
            )
        if target.exists() and not target.is_dir():
            raise ScaffoldError("the target is a file", subject=str(target), hint=_ELSEWHERE)
        create: list[str] = []
        change: list[str] = []
        keep: list[str] = []
        for name, text in files.items():
            _refuse_detour(target, name)
            path = target / name
            if not path.exists():
                create.append(name)
            elif path.is_dir():
                raise ScaffoldError("a folder is where a file would go", subject=str(path), hint=_ELSEWHERE)
            else:
                (keep if path.read_bytes() == text.encode() else change).append(name)
        there = sum(1 for path in target.rglob("*") if not path.is_dir()) if target.is_dir() else 0
        return Plan(target, tuple(create), tuple(change), tuple(keep), there - len(change) - len(keep))


def write(files: Mapping[str, str], target: Path, *, force: bool = False, edits: Collection[str] | None = None) -> Plan:
    """Put `files` at `target` and return what was done. After a failure the disk is as it was before.

    Args:
        files: path below the target, to text.
        target: the folder; made, with its parents, where it is missing.
        force: write into a folder that is not empty, and over files that differ.
        edits: the folder is a project that is added to: its other files are no obstacle, and of its files these may change.

    Raises:
        ScaffoldError: something is in the way, or the disk refuses.
    """
    what = plan(files, target)
    if not force and (set(what.change).difference(edits or ()) or (edits is None and (what.keep or what.strangers))):
        raise _in_the_way(what, edits)
    with _told(target), _parents(target.parent):
        home = target if target.is_dir() else target.parent  # beside the final place, so that a rename moves it
        staging = home / f".{target.name}.{secrets.token_hex(4)}.new"
        try:
            staging.mkdir()
            for name, text in files.items():
                (staging / name).parent.mkdir(parents=True, exist_ok=True)
                (staging / name).write_bytes(text.encode())
            if target.exists():
                _merge(staging, target, [*what.create, *what.change])
            else:
                os.rename(staging, target)
        finally:
            shutil.rmtree(staging, ignore_errors=True)
    return what


_ELSEWHERE = "choose another place with --output DIR"
_REAL = "name the place that it points to, or choose another"


def _in_the_way(what: Plan, edits: Collection[str] | None) -> ScaffoldError:
    listed = [f"would change: {name}" for name in what.change if name not in (edits or ())]
    if edits is not None:
        hint = "give the module another NAME, or --force to write over it"
        return ScaffoldError("a file is in the way; nothing was written", subject=str(what.target), cause="\n".join(listed), hint=hint)
    if others := what.strangers + len(what.keep):
        listed.append(f"{others} other file{'s are' if others > 1 else ' is'} there")
    return ScaffoldError(
        "the target exists and is not empty; nothing was written",
        subject=str(what.target),
        cause="\n".join(listed),
        hint="use another name or --output, or --force to write into it (files that differ are overwritten, others stay)",
    )


def _refuse_detour(target: Path, name: str) -> None:
    """Refuse a symbolic link anywhere on the way from `target` to the file."""
    place = target
    for part in Path(name).parts:
        place /= part
        if place.is_symlink():
            raise ScaffoldError("a symbolic link is in the way", subject=str(place), cause=f"it points to {os.readlink(place)}", hint=_REAL)


def _merge(staging: Path, target: Path, names: list[str]) -> None:
    """Move files one by one into a folder that exists; on failure take them back."""
    undo: list[Callable[[], object]] = []
    saved = staging / ".old"
    saved.mkdir()
    try:
        for number, name in enumerate(names):
            final = target / name
            for folder in reversed([parent for parent in final.parents if target in parent.parents and not parent.exists()]):
                folder.mkdir()
                undo.append(folder.rmdir)
            if final.exists():
                shutil.copymode(final, staging / name)
                old = saved / str(number)
                os.rename(final, old)
                undo.append(partial(os.rename, old, final))
            os.rename(staging / name, final)
            undo.append(final.unlink)
    except BaseException:
        for step in reversed(undo):
            step()
        raise


@contextlib.contextmanager
def _parents(folder: Path) -> Iterator[None]:
    """Make the missing parents; take them away again when what follows fails.

    Raises:
        ScaffoldError: one of them is a file, or a link to nowhere.
    """
    missing = [place for place in (folder, *folder.parents) if not place.exists()]
    for place in (folder, *folder.parents):
        if place.is_symlink() and not place.exists():
            cause = f"it points to {os.readlink(place)}, which is not there"
            raise ScaffoldError("a symbolic link is in the way", subject=str(place), cause=cause, hint=_REAL)
        if place.exists() and not place.is_dir():
            raise ScaffoldError("a file is where a folder would go", subject=str(place), hint=_ELSEWHERE)
    folder.mkdir(parents=True, exist_ok=True)
    try:
        yield
    except BaseException:
        for place in missing:
            with contextlib.suppress(OSError):
                place.rmdir()
        raise


_ADVICE = {
    errno.EACCES: "the folder is not writable for you: choose another with --output DIR",
    errno.EPERM: "the folder is not writable for you: choose another with --output DIR",
    errno.EROFS: "the file system is read-only: choose another place with --output DIR",
    errno.ENOSPC: "the disk is full: make room, or choose another place with --output DIR",
    errno.EDQUOT: "your disk quota is used up: make room, or choose another place with --output DIR",
    errno.ENAMETOOLONG: "the path is too long for this file system: choose a shorter name, or another place with --output DIR",
}


@contextlib.contextmanager
def _told(subject: Path) -> Iterator[None]:
    """Turn the system's refusal into words."""
    try:
        yield
    except OSError as exc:
        advice = _ADVICE.get(exc.errno or 0, _ELSEWHERE)
        raise ScaffoldError("nothing was written", subject=str(subject), cause=f"{exc.strerror or exc}", hint=advice) from exc
