"""Where the processes of one engine meet: Unix sockets in a folder that only this user can enter."""

from __future__ import annotations

import os
import tempfile

LONGEST_PATH = 103  # bytes of a Unix socket's path: 107 on Linux, 103 on macOS
SHORT_PLACE = "/tmp"  # noqa: S108 - mkdtemp makes the folder in it private


def make_folder(prefix: str, socket: str) -> str:
    """Make a new private folder in the temporary folder, or in /tmp where a socket's path would be too long for the system.

    Args:
        prefix: what the folder's name begins with.
        socket: the longest name of a socket in it.
    """
    folder = tempfile.mkdtemp(prefix=prefix)
    if len(os.fsencode(f"{folder}/{socket}")) <= LONGEST_PATH:
        return folder
    os.rmdir(folder)
    return tempfile.mkdtemp(prefix=prefix, dir=SHORT_PLACE)
