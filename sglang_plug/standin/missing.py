"""Hook targets that SGLang has and the stand-in has not: said in a line, where the registry would log a traceback."""

from __future__ import annotations

import logging

from sglang_plug.errors import TargetError


class Missing(logging.Filter):
    """Puts the reason in the place of a missing target's traceback. Looks SGLang up only where a target failed."""

    def filter(self, record: logging.LogRecord) -> bool:
        """Let every record through."""
        error = record.exc_info[1] if record.exc_info else None
        if isinstance(error, TargetError) and isinstance(record.args, tuple) and record.args:
            try:
                from sglang_plug.contract import catalogue
            except ModuleNotFoundError:  # examined by a tool that is installed elsewhere: what the catalogue needs is not here
                return True
            newest = catalogue.load(catalogue.newest())
            if newest.find(str(record.args[0]).replace(":", ".")) is not None:
                said = TargetError(f"SGLang {newest.version} has this target, the stand-in has not")
                record.exc_info = (TargetError, said, None)
        return True
