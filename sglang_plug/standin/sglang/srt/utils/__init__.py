"""Questions about the device that many modules ask. As in SGLang, this module is complete only when the platform is resolved."""

from .common import *  # noqa: F403 - as SGLang does it
