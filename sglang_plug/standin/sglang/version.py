"""The release whose interfaces the stand-in follows. The local part says that this is not SGLang."""

__version__ = "0.5.23+standin"
