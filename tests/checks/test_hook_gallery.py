"""Every flaw of a hook plugin fires its rule and no other; sound plugins are clean. One run of doctor for all."""

from __future__ import annotations

import pytest

from sglang_plug.checks.model import Level
from sglang_plug.checks.rehearsal import Limits
from tests.checks.conftest import by_name, run
from tests.checks.galleries import HOOKS, TARGET
from tests.plugins.install import SRT_PLUGINS, Site


@pytest.fixture(scope="module")
def report(tmp_path_factory):
    root = tmp_path_factory.mktemp("hooks")
    site = Site(root / "site")
    for name, (text, _) in HOOKS.items():
        body = text.replace("TGT", f"tgt_{name}").replace("MOD", f"hk_{name}")
        files = {f"hk_{name}.py": body, f"tgt_{name}.py": TARGET}
        if name == "unimported":
            files = {
                f"hk_{name}/__init__.py": body,
                f"hk_{name}/hooks.py": 'from x import plugin_hook\n@plugin_hook("a.b")\ndef h(r): pass\n',
            }
        site.add(f"{name.replace('_', '-')}-dist", {SRT_PLUGINS: {name: f"hk_{name}:register"}}, files)
    site.write(
        {
            "broken_late.py": "import not_installed_anywhere\ndef f(x): return x\n",
            "broken_pkg/__init__.py": "",
            "broken_pkg/sub.py": "import not_installed_anywhere\ndef f(x): return x\n",
            "broken_raise.py": "raise RuntimeError('no device')\n",
            "broken_syntax.py": "def f(:\n",
        }
    )
    return run(site, root / "cwd", limits=Limits(timeout=5, memory=1 << 30), runtimes=("srt",))


@pytest.mark.parametrize("name", HOOKS)
def test_one_flaw_one_rule(report, name):
    found = {f.code: f for f in by_name(report)[name] if f.level is not Level.INFO}
    told = "\n".join(f"{f.code} {f.message} | {f.cause}" for f in found.values())
    assert set(found) == HOOKS[name][1], told
    assert all(f.hint for f in found.values()), told
