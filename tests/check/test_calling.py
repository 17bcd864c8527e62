"""Calls that cannot register what they are meant to, each as SGLang's registry answers it; and those that can."""

from __future__ import annotations

import pytest

HEAD = """\
from functools import partial
from sglang.srt.plugins.hook_registry import HookRegistry, HookType, plugin_hook
T = "sglang.srt.managers.scheduler.Scheduler.run_batch"
def around(original, *args, **kwargs): return original(*args, **kwargs)
"""

WRONG = {
    "swapped": ("HookRegistry.register(T, HookType.AROUND, around)", "type comes last"),
    "a text as type": ("HookRegistry.register(T, around, 'around')", "a text as the hook's type"),
    "a text through a table": ("for t, kind in ((T, 'around'),):\n    HookRegistry.register(t, around, kind)", "a text as"),
    "a text through a wrapper": ("def add(t, kind):\n    HookRegistry.register(t, around, kind)\nadd(T, 'around')", "a text as"),
    "no type": ("HookRegistry.register(T, around, None)", "None as the hook's type"),
    "type= for hook_type=": ("HookRegistry.register(T, around, type=HookType.AROUND)", "hook's type is hook_type="),
    "hook_type= for type=": ("@plugin_hook(T, hook_type=HookType.AROUND)\ndef h(original, *a, **k): return original(*a, **k)", "is type="),
    "priority=": ("HookRegistry.register(T, around, HookType.AROUND, priority=1)", "'priority'"),
    "a fourth": ("HookRegistry.register(T, around, HookType.AROUND, 'me')", "3 arguments by position, and 4"),
    "no hook": ("HookRegistry.register(T)", "without 'hook'"),
    "no hook, as a decorator": ("@HookRegistry.register(T)\ndef h(result, *a, **k): return result", "@plugin_hook"),
    "None as hook": ("HookRegistry.register(T, None, HookType.AROUND)", "None is registered as a hook"),
    "a type as hook": ("HookRegistry.register(T, HookType.AROUND)", "cannot be called"),
    "not a decorator": ("plugin_hook(T, around)", "registers nothing"),
    "a function as type": ("plugin_hook(T, around)(around)", "a function as the hook's type"),
}

RIGHT = {
    "by name": "HookRegistry.register(hook_type=HookType.AROUND, hook=around, target=T)",
    "from a text": "HookRegistry.register(T, around, HookType('around'))",
    "by key": "HookRegistry.register(T, around, HookType['AROUND'])",
    "a source": "HookRegistry.register(T, around, HookType.AROUND, source=None)",
    "partial": "add = partial(HookRegistry.register, T)\nadd(around, HookType.AROUND)",
    "partial with words": "add = partial(HookRegistry.register, hook_type=HookType.AROUND)\nadd(T, around)",
    "stars": "HookRegistry.register(T, *unknown())\nHookRegistry.register(T, **unknown())",
    "a decorator called": "plugin_hook(T, HookType.AROUND)(around)",
    "a decorator kept": "deco = plugin_hook(T, HookType.AROUND)\ndeco(around)",
    "converted": "def add(t, kind='around'):\n    kind = HookType(kind)\n    HookRegistry.register(t, around, kind)\nadd(T, 'around')",
    "converted where needed": (
        "def add(t, kind):\n    if not isinstance(kind, str):\n        HookRegistry.register(t, around, kind)\n"
        "    else:\n        HookRegistry.register(t, around, HookType(kind))\nadd(T, 'around')"
    ),
    "tried": (
        "try:\n    HookRegistry.register(T, around, type=HookType.AROUND)\n"
        "except TypeError:\n    HookRegistry.register(T, around, hook_type=HookType.AROUND)"
    ),
    "another registry": "class Own:\n    def register(self, *a): ...\nOwn().register(T)",
    "its own registry": "class HookRegistry:\n    @classmethod\n    def register(cls, *a): ...\nHookRegistry.register('gone.x', 1)",
    "a registry handed in": "def add(HookRegistry):\n    HookRegistry.register(T)\nadd(HookRegistry)",
    "a hook made by a call": "HookRegistry.register(T, partial(around), HookType.AROUND)",
}


@pytest.mark.parametrize("form", WRONG)
def test_calls_that_register_nothing(findings, form):
    source, told = WRONG[form]
    (finding,) = findings(HEAD + source)
    assert finding.code == "SP532"
    assert told in f"{finding.message} {finding.hint}"


@pytest.mark.parametrize("form", RIGHT)
def test_calls_that_register(codes, form):
    assert codes(HEAD + RIGHT[form]) == []


def test_what_a_test_expects_to_fail_is_its_own(codes):
    assert codes({"plug/__init__.py": "", "tests/test_it.py": f"{HEAD}def test_it():\n    HookRegistry.register(T)\n"}) == []
