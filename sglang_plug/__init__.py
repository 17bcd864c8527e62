"""sglang-plug: the toolchain for people who extend SGLang from outside its tree."""

__version__ = "0.1.0"
