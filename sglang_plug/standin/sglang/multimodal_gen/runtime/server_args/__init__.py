"""The arguments of a diffusion server."""

from .server_args import (
    PortArgs,
    ServerArgs,
    get_global_server_args,
    prepare_server_args,
    set_global_server_args,
)

__all__ = ["PortArgs", "ServerArgs", "get_global_server_args", "prepare_server_args", "set_global_server_args"]
