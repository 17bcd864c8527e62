"""Metadata: entry points in every file that may hold them, requirements, packages."""

from __future__ import annotations

import pytest

CALLBACK = "def register():\n    return None\n"


def toml(group: str = "sglang.srt.plugins", value: str = "plug.mod:register", more: str = "") -> str:
    return f'[project]\nname = "plug"\nversion = "1.0"\n{more}\n[project.entry-points."{group}"]\nmine = "{value}"\n'


def project(metadata: dict[str, str], module: str = CALLBACK) -> dict[str, str]:
    return {"plug/__init__.py": "", "plug/mod.py": module, **metadata}


def codes_of(plugins, files):
    return [finding.code for finding in plugins.report(files).findings]


def test_a_sound_project(plugins):
    assert codes_of(plugins, project({"pyproject.toml": toml()})) == []


PLACES = {
    "setup.cfg": "[metadata]\nname = plug\n[options.entry_points]\nsglang.plugins =\n    mine = plug.mod:register\n",
    "setup.py": "from setuptools import setup\nsetup(name='plug', entry_points={'sglang.plugins': ['mine = plug.mod:register']})\n",
    "pyproject.toml": toml("sglang.plugins"),
    "plug-1.0.dist-info/entry_points.txt": "[sglang.plugins]\nmine = plug.mod:register\n",
}


@pytest.mark.parametrize("name", PLACES)
def test_entry_points_are_found_wherever_they_stand(plugins, name):
    files = project({name: PLACES[name]})
    if "dist-info" in name:
        files["plug-1.0.dist-info/METADATA"] = "Name: plug\nVersion: 1.0\n"
    (finding,) = plugins.report(files).findings
    assert (finding.code, finding.subject["group"]) == ("SP204", "sglang.plugins")
    assert "'sglang.srt.plugins'" in finding.hint


def test_poetry_is_read(plugins):
    text = '[tool.poetry]\nname = "plug"\n[tool.poetry.plugins."sglang.srt.plugin"]\nmine = "plug.mod:register"\n'
    assert codes_of(plugins, project({"pyproject.toml": text})) == ["SP204"]


@pytest.mark.parametrize(
    "group", ["vllm.general_plugins", "console_scripts", "sglang_jax.plugins_of_mine", "pytest11", "sglang.srt.platforms"]
)
def test_groups_of_others_are_left_alone(plugins, group):
    module = 'def register():\n    return "plug.mod:P"\nclass P: ...\n'
    assert "SP204" not in codes_of(plugins, project({"pyproject.toml": toml(group)}, module))


@pytest.mark.parametrize(
    ("value", "code"),
    [
        ("my-plugin:register", "SP203"),
        ("plug/mod.py:register", "SP203"),
        ("plug.mod", "SP203"),
        ("", "SP203"),
        ("plug.nope:register", "SP208"),
        ("plug.mod:regster", "SP208"),
        ("plug.mod:register [gpu]", None),
        ("other_package:register", None),
    ],
)
def test_values(plugins, value, code):
    assert codes_of(plugins, project({"pyproject.toml": toml(value=value)})) == ([code] if code else [])


@pytest.mark.parametrize(
    ("module", "code"),
    [
        ("def register(config): ...\n", "SP307"),
        ("async def register(): ...\n", "SP307"),
        ("def register():\n    yield 1\n", "SP307"),
        ("class register: ...\n", "SP307"),
        ("def register(config=None): ...\n", None),
        ("from .other import register\n", None),
        ("try:\n    from x import register\nexcept ImportError:\n    def register(): ...\n", None),
        ("def __getattr__(name): ...\n", None),
    ],
)
def test_callbacks(plugins, module, code):
    assert codes_of(plugins, project({"pyproject.toml": toml(), "plug/other.py": "def register(): ...\n"}, module)) == (
        [code] if code else []
    )


@pytest.mark.parametrize(
    ("body", "code"),
    [
        ("return True", "SP308"),
        ("return (True, 'plug.mod:P')", "SP308"),
        ("return ''", "SP308"),
        ("return P", "SP308"),
        ("return 'P'", "SP308"),
        ("pass", "SP308"),
        ("return 'plug.mod:Q'", "SP401"),
        ("return 'plug.mod.P'", None),
        ("return 'plug.mod:P'", None),
        ("return f'{__name__}:P'", None),
        ("return NAME", None),
        ("return 'plug.mod:P' if cond() else None", None),
        ("return None", None),
        ("raise RuntimeError", None),
        ("return find()", None),
        ("return 'other.package:P'", None),
    ],
)
def test_what_an_activation_returns(plugins, body, code):
    module = f"NAME = 'plug.mod:P'\nclass P: ...\ndef register():\n    {body}\n"
    assert codes_of(plugins, project({"pyproject.toml": toml("sglang.srt.platforms")}, module)) == ([code] if code else [])


def test_names_that_are_reserved_or_doubled(plugins):
    text = toml("sglang.multimodal_gen.platforms").replace("mine =", "cuda =")
    module = 'def register():\n    return "plug.mod:P"\nclass P: ...\n'
    assert codes_of(plugins, project({"pyproject.toml": text}, module)) == ["SP206"]
    twice = "[options.entry_points]\nsglang.srt.plugins =\n    a = plug.mod:register\n    a = plug.mod:other\n"
    files = project({"setup.cfg": twice}, "def register(): ...\ndef other(): ...\n")
    (plugins.root / "pyproject.toml").unlink()
    assert codes_of(plugins, files) == ["SP205"]


def test_a_group_that_a_release_does_not_read(plugins):
    module = 'def register():\n    return "plug.mod:P"\nclass P: ...\n'
    report = plugins.report(project({"pyproject.toml": toml("sglang.multimodal_gen.platforms")}, module), "0.5.20", "0.5.21")
    assert [(finding.code, finding.data["releases"]) for finding in report.findings] == [("SP005", ["0.5.20"])]


@pytest.mark.parametrize(
    ("requirement", "code"),
    [
        ("torch==2.9.0", "SP802"),
        ("sglang==0.5.23", "SP802"),
        ("torch @ https://x/y.whl", "SP802"),
        ("torch>=2.4", None),
        ("sglang>=0.5.17,<0.6", None),
        ("torch==2.9.*", None),
        ("torchvision==1.0", None),
    ],
)
def test_requirements(plugins, requirement, code):
    found = codes_of(plugins, project({"pyproject.toml": toml(more=f'dependencies = ["{requirement}"]')}))
    assert found == ([code] if code else [])


def test_metadata_that_cannot_be_read(plugins):
    report = plugins.report(project({"pyproject.toml": "[project\nname = 1\n"}))
    assert [finding.code for finding in report.findings] == ["SP804"]
    assert report.findings[0].location.line == 1


def test_nothing_declared_is_a_note(plugins):
    report = plugins.report(project({"pyproject.toml": '[project]\nname = "plug"\n'}))
    assert [(finding.code, finding.level) for finding in report.findings] == [("SP803", "info")]


SUB = {"plug/sub/thing.py": "", "plug/mod.py": "from .sub import thing\ndef register(): ...\n"}
SETUPTOOLS = "[tool.setuptools]\npackages = {}\n"


@pytest.mark.parametrize(
    ("packages", "with_init", "left_out"),
    [
        ('["plug"]', True, True),
        ('["plug", "plug.sub"]', True, False),
        ("find", True, False),
        ("find-include-plug", True, True),
        ("find-include-all", True, False),
        ("find-no-namespaces", False, True),
        ("find", False, False),
    ],
)
def test_packages_that_the_build_leaves_out(plugins, packages, with_init, left_out):
    tables = {
        "find": "[tool.setuptools.packages.find]\n",
        "find-include-plug": '[tool.setuptools.packages.find]\ninclude = ["plug"]\n',
        "find-include-all": '[tool.setuptools.packages.find]\ninclude = ["plug*"]\n',
        "find-no-namespaces": "[tool.setuptools.packages.find]\nnamespaces = false\n",
    }
    table = tables.get(packages, SETUPTOOLS.format(packages))
    files = project({"pyproject.toml": toml() + table}) | SUB | ({"plug/sub/__init__.py": ""} if with_init else {})
    assert codes_of(plugins, files) == (["SP801"] if left_out else [])


def test_setup_py_find_packages_wants_an_init(plugins):
    setup = (
        "from setuptools import find_packages, setup\n"
        "setup(name='plug', packages=find_packages(), entry_points={'sglang.srt.plugins': ['m = plug.mod:register']})\n"
    )
    assert codes_of(plugins, {"plug/__init__.py": "", "setup.py": setup, **SUB}) == ["SP801"]


def test_other_backends_take_whole_folders(plugins):
    text = '[build-system]\nrequires = ["hatchling"]\nbuild-backend = "hatchling.build"\n' + toml()
    assert codes_of(plugins, project({"pyproject.toml": text}) | SUB) == []


def test_code_in_every_process(plugins):
    files = project({"pyproject.toml": toml(), "plug.pth": "import plug.mod; plug.mod.register()\n"})
    assert codes_of(plugins, files) == ["SP213"]
    files["plug.pth"] = "src\n"
    assert codes_of(plugins, files) == []


@pytest.mark.parametrize(("value", "more", "expected"), [
    ("plugg_n:register", {}, None), ("plgu:register", {}, "SP208"), ("plgu:register", {"plgu.abi3.so": ""}, None),
    ("plgu:register", {"plgu/data.txt": ""}, None),
])  # fmt: skip
def test_a_misspelt_package(plugins, value, more, expected):
    assert codes_of(plugins, project({"pyproject.toml": toml(value=value), **more})) == ([expected] if expected else [])


@pytest.mark.parametrize(("path", "codes"), [("plug/other.py", ["SP707"]), ("plug/templates/other.py", []), ("tests/other.py", [])])
def test_a_file_without_sglang_that_cannot_be_parsed(plugins, path, codes):
    assert codes_of(plugins, project({"pyproject.toml": toml(), path: "def f(:\n"})) == codes


def test_a_file_that_may_not_be_read_is_told(plugins, monkeypatch):
    from pathlib import Path

    read = Path.read_bytes

    def refuse(path):
        if path.name == "mod.py":
            raise PermissionError(13, "Permission denied")
        return read(path)

    monkeypatch.setattr(Path, "read_bytes", refuse)
    (finding,) = [found for found in plugins.findings(project({})) if found.code != "SP803"]
    assert finding.code == "SP707"
    assert "cannot be read: Permission denied" in finding.message


def test_the_whole_disk_is_refused():
    from pathlib import Path

    from sglang_plug.checks.source.project import read_project
    from sglang_plug.errors import UsageError

    with pytest.raises(UsageError, match="whole disk"):
        read_project(Path("/"))


@pytest.mark.parametrize(
    ("name", "text", "releases"),
    [
        (
            "pyproject.toml",
            '[project]\nname = "p"\nversion = "1"\ndependencies = ["sglang[all]>=0.5.22; python_version > \'3\'"]\n',
            "0.5.22 0.5.23",
        ),
        ("pyproject.toml", '[tool.poetry]\nname = "p"\nversion = "1"\n[tool.poetry.dependencies]\nsglang = "^0.5.22"\n', "0.5.22 0.5.23"),
        ("pyproject.toml", '[project]\nname = "p"\nversion = "1"\n[project.optional-dependencies]\nsrt = ["sglang==0.5.22"]\n', "0.5.22"),
        ("setup.cfg", "[metadata]\nname = p\n[options]\ninstall_requires =\n  torch\n  sglang~=0.5.22\n", "0.5.22 0.5.23"),
        (
            "setup.py",
            'from setuptools import setup\nR = ["sglang>=0.5.21,<0.5.23"]\nsetup(name="p", install_requires=R)\n',
            "0.5.21 0.5.22",
        ),
    ],
)
def test_the_releases_that_a_plugin_declares(plugins, name, text, releases):
    from sglang_plug.checks.source.project import read_project
    from sglang_plug.checks.source.scope import own_releases

    root = plugins.lay({"plug/__init__.py": ""})
    (root / name).write_text(text)
    found, why = own_releases(read_project(root).declared)
    assert (" ".join(found), "it requires sglang" in why) == (releases, True)


def test_a_requirement_that_no_known_release_meets_is_said(plugins):
    from sglang_plug.checks.source.project import read_project
    from sglang_plug.checks.source.scope import own_releases

    root = plugins.lay({"plug/__init__.py": "", "pyproject.toml": "[project]\nname = 'p'\ndependencies = ['sglang>=7']\n"})
    assert own_releases(read_project(root).declared) == (
        ("0.5.23",),
        "the newest release that is known: it requires sglang>=7, which none is",
    )
