"""The exception tree: every failure that a user can act on. Owns hint, subject, cause and exit code; never prints."""

from __future__ import annotations


class SglangPlugError(Exception):
    """A failure told to the user: what failed, on what subject, why, and what to type next.

    Args:
        message: one sentence that says what failed.
        subject: the thing it failed on (an entry point, a variable, a path), as the user wrote it.
        cause: the root cause, not the last wrapper.
        hint: a sentence with a command or a value to set.
    """

    exit_code = 1

    def __init__(self, message: str, *, subject: str | None = None, cause: str | None = None, hint: str | None = None) -> None:
        super().__init__(message)
        self.message = message
        self.subject = subject
        self.cause = cause
        self.hint = hint


class UsageError(SglangPlugError):
    """The command line itself is wrong (exit status 2)."""

    exit_code = 2


class BadVariable(SglangPlugError, ValueError):
    """An environment variable holds text that cannot be read."""


class PlatformError(SglangPlugError):
    """The selection chain ends in an error. Derives, per kind, from the built-in type that SGLang raises."""


class PlatformNotFound(PlatformError, RuntimeError):
    """The selector names an entry point that is not installed (SRT raises RuntimeError)."""


class UnsupportedOverride(PlatformError, ValueError):
    """The diffusion selector names neither a built-in nor an installed entry point (ValueError upstream)."""


class PlatformUnavailable(PlatformError, RuntimeError):
    """The selected plugin's callback returned None: its hardware is absent."""


class PlatformAmbiguous(PlatformError, RuntimeError):
    """Several plugins are active and none is selected."""


class EntryPointConflict(PlatformError, RuntimeError):
    """Entry-point names are duplicated or reserved where the runtime refuses that."""


class BrokenMetadata(SglangPlugError, ValueError):
    """An installed distribution's metadata cannot be read, which ends every enumeration of entry points."""


class BadPlatformClass(PlatformError, TypeError):
    """What a callback returned is not a usable platform class."""


class PhaseFailed(SglangPlugError, RuntimeError):
    """A phase (select, load, apply, init) failed before in this process; it is never tried again."""


class HookError(SglangPlugError):
    """A hook cannot be registered or applied."""


class HookTypeError(HookError, TypeError):
    """A hook's kind does not fit its target or its type."""


class TargetError(HookError, AttributeError):
    """A hook target does not resolve. `cause` holds the failing import behind it, when there is one."""


class ScaffoldError(SglangPlugError):
    """A package cannot be generated or changed."""


class LaunchError(SglangPlugError):
    """The engine cannot be started, or ended badly."""


class ProbeError(SglangPlugError):
    """The child process could not be started or spoke nonsense."""


class CatalogueError(SglangPlugError):
    """A release is unknown to the catalogue, or its data cannot be read."""
