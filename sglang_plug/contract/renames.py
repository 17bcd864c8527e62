"""Platform members that a release renamed, replaced or stopped reading, and what to write instead. Data only."""

from __future__ import annotations

from typing import NamedTuple

from packaging.version import Version


class Change(NamedTuple):
    """One member that went away.

    Attributes:
        runtime: `srt` or `diffusion`.
        old: the name that plugins still define.
        since: the first release without it.
        new: the name to define instead, when it is a plain rename; None where the replacement has another shape.
        instead: what to write, in words; empty where nothing replaces it.
        served: the core still reads the old name, with a warning.
    """

    runtime: str
    old: str
    since: str
    new: str | None = None
    instead: str = ""
    served: bool = False


CHANGES = (
    Change("srt", "get_nsa_kv_pool_cls", "0.5.13", "get_dsa_kv_pool_cls", "it is called get_dsa_kv_pool_cls() now"),
    Change("srt", "support_cuda_graph", "0.5.22", None, "set `capabilities = PlatformCapabilities(graph_capture=…)` on the class"),
    Change(
        "srt", "support_piecewise_cuda_graph", "0.5.22", None, "set `capabilities = PlatformCapabilities(piecewise_graph=…)` on the class"
    ),
    Change("srt", "supports_fp8", "0.5.22", None, ""),
    Change("srt", "get_mha_kv_pool_cls", "0.5.22", None, "define get_kv_pool_cls(self, *, kind) and answer kind == 'mha'", served=True),
    Change("srt", "get_mla_kv_pool_cls", "0.5.22", None, "define get_kv_pool_cls(self, *, kind) and answer kind == 'mla'", served=True),
    Change("srt", "get_dsa_kv_pool_cls", "0.5.22", None, "define get_kv_pool_cls(self, *, kind) and answer kind == 'dsa'", served=True),
    Change("diffusion", "verify_quantization", "0.5.23", None, ""),
    Change("diffusion", "supported_quantization", "0.5.23", None, ""),
    Change("diffusion", "is_async_output_supported", "0.5.23", None, ""),
)


def change_of(runtime: str, member: str, release: str) -> Change | None:
    """Return what happened to a member that `release` no longer has, or None."""
    found = [
        change for change in CHANGES if change.runtime == runtime and change.old == member and Version(change.since) <= Version(release)
    ]
    return found[-1] if found else None
