"""What the catalogue says about each platform method, in the few words that a docstring has room for."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from sglang_plug.contract.model import PlatformContract


class Statuses(dict[str, str]):
    """Method name to words; a name that the release does not know says so."""

    def __init__(self, contract: PlatformContract) -> None:
        super().__init__({name: _words(contract.release, member.uses, called=member.called) for name, member in contract.members.items()})
        self.release = contract.release

    def __missing__(self, name: str) -> str:
        return f"[{self.release}: not asked for]"


def _words(release: str, uses: int, *, called: bool) -> str:
    if uses:
        return f"[{release}: called from {uses} place{'s' if uses != 1 else ''}]"
    return f"[{release}: called by SGLang itself]" if called else f"[{release}: never called]"
