"""Where the processes of one engine meet: Unix sockets in a folder that only this user can enter."""

from __future__ import annotations

import fcntl
import os
import shutil
import tempfile
from pathlib import Path

LONGEST_PATH = 103  # bytes of a Unix socket's path: 107 on Linux, 103 on macOS
SHORT_PLACE = "/tmp"  # noqa: S108 - mkdtemp makes the folder in it private
_OWNER = "owner"  # a file that the folder's maker keeps locked as long as it lives


def make_folder(prefix: str, socket: str) -> str:
    """Make a new private folder in the temporary folder, or in /tmp where a socket's path would be too long for the system.

    A process that is killed outright cannot remove its folder: what such processes left behind is removed here.

    Args:
        prefix: what the folder's name begins with.
        socket: the longest name of a socket in it.
    """
    folder = tempfile.mkdtemp(prefix=prefix)
    if len(os.fsencode(f"{folder}/{socket}")) > LONGEST_PATH:
        os.rmdir(folder)
        folder = tempfile.mkdtemp(prefix=prefix, dir=SHORT_PLACE)
    fcntl.flock(os.open(f"{folder}/{_OWNER}.new", os.O_CREAT | os.O_RDWR, 0o600), fcntl.LOCK_EX)  # the system closes it
    os.rename(f"{folder}/{_OWNER}.new", f"{folder}/{_OWNER}")
    for other in Path(folder).parent.glob(f"{prefix}*"):
        if _is_left_behind(other / _OWNER):
            shutil.rmtree(other, ignore_errors=True)
    return folder


def _is_left_behind(owner: Path) -> bool:
    """Tell whether nobody holds a folder's lock. Another user's folder is not ours to judge."""
    try:
        with owner.open("r+b") as file:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        return False
    return True
