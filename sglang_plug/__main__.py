"""The `sglang-plug` command: answers `--version` and shell completion at once, hands everything else to `cli.app`."""

from __future__ import annotations

import sys

from sglang_plug import __version__
from sglang_plug.report import terminal


def main() -> None:
    """Run the command line. Never returns."""
    try:
        _run()
    except KeyboardInterrupt:  # before the frame of `cli.app` stands
        raise SystemExit(130) from None


def _run() -> None:
    terminal.settle()
    if sys.argv[1:] in (["--version"], ["-V"]):  # a bare answer must not pay for typer
        print(f"sglang-plug {__version__}")  # noqa: T201
        raise SystemExit(0)
    if sys.argv[1:2] == ["__values"]:  # a shell waits for the answer at every press of the tab key
        from sglang_plug.cli.values import offer

        raise SystemExit(offer(sys.argv[2:]))
    looks = sys.argv[1:2] in (["resolve"], ["list"])
    if looks:  # into another interpreter: let that start while we read the command line
        from sglang_plug.probe import headstart

        headstart.begin(sys.argv[1:])
    from sglang_plug.cli.app import run

    try:
        raise SystemExit(run(sys.argv[1:]))
    finally:
        if looks:
            headstart.discard()


if __name__ == "__main__":
    main()
