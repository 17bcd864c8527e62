"""`sglang-plug check` as a command: releases, formats, baseline, fixes, exit status."""

from __future__ import annotations

import json
import xml.etree.ElementTree as ET

import pytest

from sglang_plug.cli.app import run

SOURCE = "from sglang.srt.distributed import get_pp_group\n"
TOML = '[project]\nname = "plug"\nversion = "1.0"\n{}\n[project.entry-points."sglang.srt.plugins"]\nmine = "plug.mod:register"\n'
MODULE = f"{SOURCE}def register(): ...\n"


@pytest.fixture
def folder(plugins):
    return plugins.lay({"pyproject.toml": TOML.format(""), "plug/__init__.py": "", "plug/mod.py": MODULE})


@pytest.fixture
def command(folder, capsys):
    def call(*args: str) -> tuple[int, str, str]:
        status = run(["check", str(folder), *args])
        told = capsys.readouterr()
        return status, told.out, told.err

    return call


def test_findings_fail_and_a_clean_plugin_does_not(command):
    assert command("--sglang", "0.5.23")[0] == 1
    assert command("--sglang", "0.5.20")[0] == 0


def test_the_matrix(command):
    _, out, _ = command("--sglang", ">=0.5.20")
    rows = [line for line in out.splitlines() if line.startswith(("SP701", "verdict"))]
    assert rows[0].split()[-4:] == ["·", "E", "E", "E"]
    assert rows[1].split()[-4:] == ["ok", "E", "E", "E"]
    assert "on: 0.5.21 to 0.5.23" in out


def test_the_matrix_has_one_row_a_name_and_fits_a_terminal(command, folder, monkeypatch):
    (folder / "plug/mod.py").write_text(
        "import sglang.srt.layers.attention.fla.chunk\n" + SOURCE + "def f():\n    from sglang.srt.distributed import get_pp_group\n"
    )
    monkeypatch.setenv("COLUMNS", "80")
    out = command("--sglang", "all")[1].splitlines()
    matrix = out[2 : out.index("", 2)]
    assert [line.split()[0] for line in matrix[1:]] == ["SP702", "SP701", "SP208", "verdict"]  # the last depends on no release
    assert max(map(len, matrix)) <= 80
    assert "get_pp_group" in matrix[2]


def test_the_json(command):
    status, out, err = command("--sglang", "0.5.20", "--sglang", "0.5.23", "--format", "json")
    told = json.loads(out)
    assert (status, told["schema"]) == (1, 1)
    assert told["releases"] == {"0.5.20": None, "0.5.23": "error"}
    (finding,) = told["findings"]
    assert (finding["code"], finding["location"]["path"], finding["location"]["line"]) == ("SP701", "plug/mod.py", 1)
    assert finding["data"]["releases"] == ["0.5.23"]
    assert told["summary"]["error"] == 1
    assert err == ""


def test_other_formats(command):
    sarif = json.loads(command("--sglang", "0.5.23", "--format", "sarif")[1])
    assert sarif["runs"][0]["results"][0]["ruleId"] == "SP701"
    suite = ET.fromstring(command("--sglang", "0.5.23", "--format", "junit")[1])
    assert suite.get("failures") == "1"
    assert "get\\_pp\\_group" in command("--sglang", "0.5.23", "--format", "markdown")[1]
    assert command("--sglang", "0.5.23", "--format", "github")[1].startswith("::error file=plug/mod.py,line=1")


def test_what_the_plugin_requires_is_what_it_is_checked_against(command, folder):
    (folder / "pyproject.toml").write_text(TOML.format('dependencies = ["sglang>=0.5.19,<0.5.21"]'))
    status, out, err = command()
    assert status == 0
    assert "it requires sglang" in err
    assert "2 releases" in out


def test_an_extra_counts_as_a_requirement(command, folder):
    (folder / "pyproject.toml").write_text(TOML.format('[project.optional-dependencies]\nsglang = ["sglang>=0.5.22"]'))
    assert "checked against 2 releases" in command()[1]


def test_options_of_the_project(command, folder):
    (folder / "pyproject.toml").write_text(TOML.format("") + '[tool.sglang-plug]\nsglang = ["0.5.22"]\nignore = ["SP701"]\n')
    assert command()[0] == 0
    assert command("--ignore", "SP5")[0] == 1  # the command line wins


def test_rules_are_chosen(command):
    assert command("--sglang", "0.5.23", "--ignore", "SP7")[0] == 0
    assert command("--sglang", "0.5.23", "--select", "import-missing")[0] == 1
    assert command("--sglang", "0.5.23", "--select", "SP5")[0] == 0
    assert command("--sglang", "0.5.23", "--select", "SP999")[0] == 2


def test_warnings_fail_when_strict(command, folder):
    (folder / "plug/mod.py").write_text("def register(): ...\n")
    (folder / "plug.pth").write_text("import plug\n")
    assert command("--sglang", "0.5.23")[0] == 0
    assert command("--sglang", "0.5.23", "--strict")[0] == 1


def test_a_baseline_holds_what_is_known(command, folder, tmp_path):
    known = tmp_path / "known.json"
    assert command("--sglang", "0.5.23", "--write-baseline", str(known))[0] == 0
    status, out, _ = command("--sglang", "0.5.23", "--baseline", str(known))
    assert status == 0
    assert "1 known ones left out" in out
    (folder / "plug/mod.py").write_text(f"\n\n{MODULE}from sglang.srt.distributed import nothing\n")
    status, out, _ = command("--sglang", "0.5.23", "--baseline", str(known), "--format", "json")
    assert [finding["location"]["line"] for finding in json.loads(out)["findings"]] == [5]


def test_a_baseline_counts(command, folder, tmp_path):
    """One known finding does not hide a second one of the same name in the same file."""
    known = tmp_path / "known.json"
    command("--sglang", "0.5.23", "--write-baseline", str(known))
    (folder / "plug/mod.py").write_text(f"{MODULE}def f():\n    {SOURCE}")
    status, out, _ = command("--sglang", "0.5.23", "--baseline", str(known), "--format", "json")
    assert (status, len(json.loads(out)["findings"])) == (1, 1)


@pytest.mark.parametrize("text", ["", "[]", "{}", '{"schema": 9, "findings": {}}', '{"schema": 1, "findings": {"a": 1}}'])
def test_a_file_that_is_no_baseline(command, tmp_path, text):
    (tmp_path / "b.json").write_text(text)
    assert command("--sglang", "0.5.23", "--baseline", str(tmp_path / "b.json"))[0] == 2


def test_what_a_baseline_holds_and_the_source_no_longer_is_told(command, folder, tmp_path):
    known = str(tmp_path / "known.json")
    command("--sglang", "0.5.23", "--write-baseline", known)
    assert "are gone" not in command("--sglang", "0.5.23", "--baseline", known)[2]
    (folder / "plug/mod.py").write_text("# moved\n" + MODULE)
    assert command("--sglang", "0.5.23", "--baseline", known)[0] == 0
    (folder / "plug/mod.py").write_text("def register(): ...\n")
    status, _, err = command("--sglang", "0.5.23", "--baseline", known)
    assert (status, f"1 of {known} are gone" in err) == (0, True)


def test_fixes_are_shown_before_they_are_written(command, folder):
    (folder / "plug/mod.py").write_text("def register(): ...\n")
    (folder / "pyproject.toml").write_text("# kept\n" + TOML.format("").replace("sglang.srt.plugins", "sglang.plugins"))
    before = (folder / "pyproject.toml").read_text()
    status, _, err = command("--sglang", "0.5.23", "--fix")
    assert status == 1
    assert '-[project.entry-points."sglang.plugins"]' in err
    assert (folder / "pyproject.toml").read_text() == before
    command("--sglang", "0.5.23", "--fix", "--yes")
    assert (folder / "pyproject.toml").read_text() == before.replace("sglang.plugins", "sglang.srt.plugins")
    assert command("--sglang", "0.5.23")[0] == 0


PLATFORM = """\
from sglang.srt.platforms.interface import SRTPlatform
class P(SRTPlatform):
    def get_nsa_kv_pool_cls(self):  # ours
        return None
"""


def test_a_renamed_method_is_put_right_only_where_all_agree(command, folder):
    (folder / "plug/mod.py").write_text(PLATFORM + "def register(): ...\n")
    command("--sglang", "0.5.12", "--sglang", "0.5.13", "--fix", "--yes")
    assert "get_nsa_kv_pool_cls" in (folder / "plug/mod.py").read_text()  # 0.5.12 still calls it so
    command("--sglang", "0.5.13", "--sglang", "0.5.21", "--fix", "--yes")
    assert "    def get_dsa_kv_pool_cls(self):  # ours\n" in (folder / "plug/mod.py").read_text()


@pytest.mark.parametrize(
    ("head", "encoding", "end"),
    [
        ("", "utf-8", "\r\n"),
        ("", "utf-8-sig", "\n"),
        ("", "utf-8-sig", "\r\n"),
        ("# -*- coding: latin-1 -*-\nNAME = '\xfc'\n", "latin-1", "\n"),
        ("# -*- coding: euc-kr -*-\nNAME = '\ud55c'\n", "euc-kr", "\r\n"),
        ("TEXT = 'a\x0cb\u2028'\n", "utf-8", "\n"),
        ("class Q:\n\tdef go(self):\n\t\treturn 1\n", "utf-8", "\n"),
    ],
)
def test_a_fix_changes_nothing_but_the_name(command, folder, head, encoding, end):
    file = folder / "plug/mod.py"
    before = (head + PLATFORM + "def register(): ...").replace("\n", end).encode(encoding)
    file.write_bytes(before)
    file.chmod(0o755)
    command("--sglang", "0.5.13", "--fix", "--yes")
    assert file.read_bytes() == before.replace(b"get_nsa_kv_pool_cls", b"get_dsa_kv_pool_cls") != before
    assert file.stat().st_mode & 0o777 == 0o755


@pytest.mark.parametrize(
    ("name", "more"),
    [
        ("plug/mod.py", "    def go(self): return self.get_nsa_kv_pool_cls()\n"),
        ("plug/mod.py", "    other = get_nsa_kv_pool_cls\n"),
        ("plug/mod.py", "    go = lambda self: getattr(self, 'get_nsa_kv_pool_cls')()\n"),
        ("plug/mod.py", "    def get_dsa_kv_pool_cls(self): ...\n"),
        ("plug/other.py", "def use(platform): return platform.get_nsa_kv_pool_cls()\n"),
    ],
)
@pytest.mark.parametrize("alone", [False, True])
def test_a_method_that_the_plugin_uses_is_not_renamed(folder, capsys, name, more, alone):
    (folder / "plug/mod.py").write_text(PLATFORM)
    with (folder / name).open("a") as file:
        file.write(more)
    before = (folder / "plug/mod.py").read_bytes()
    assert run(["check", str(folder / "plug/mod.py" if alone else folder), "--sglang", "0.5.13", "--fix", "--yes"]) in {0, 1}
    assert "nothing here can be put right by a machine" in capsys.readouterr().err
    assert (folder / "plug/mod.py").read_bytes() == before


def test_a_misspelt_override_is_told_and_left_alone(command, folder):
    text = PLATFORM.replace("get_nsa_kv_pool_cls", "get_device_nam")
    (folder / "plug/mod.py").write_text(text)
    _, out, err = command("--sglang", "0.5.23", "--fix", "--yes")
    assert "did you mean get_device_name?" in out
    assert "nothing here can be put right" in err  # a guess is no fix
    assert (folder / "plug/mod.py").read_text() == text


def test_a_read_only_file_and_a_link(command, folder, tmp_path):
    file, there = folder / "plug/mod.py", tmp_path / "there.py"
    file.write_text(PLATFORM)
    file.chmod(0o444)
    status, _, err = command("--sglang", "0.5.13", "--fix", "--yes")
    assert (status, "read-only" in err, "Traceback" in err) == (1, True, False)
    assert file.read_text() == PLATFORM
    file.unlink()
    there.write_text(PLATFORM)
    file.symlink_to(there)
    command("--sglang", "0.5.13", "--fix", "--yes")
    assert file.is_symlink()
    assert "get_dsa_kv_pool_cls" in there.read_text()


def test_output_goes_to_a_file(command, tmp_path):
    status, out, _ = command("--sglang", "0.5.23", "--format", "json", "--output", str(tmp_path / "o.json"))
    assert (status, out) == (1, "")
    assert json.loads((tmp_path / "o.json").read_text())["schema"] == 1


@pytest.mark.parametrize("args", [["--sglang", "soon"], ["--sglang", ">=9"]])
def test_releases_that_are_none(command, args):
    assert command(*args)[0] == 1


def test_nothing_there(capsys, tmp_path):
    assert run(["check", str(tmp_path / "nope")]) == 2
    (tmp_path / "empty").mkdir()
    assert run(["check", str(tmp_path / "empty")]) == 2
    assert "hint:" in capsys.readouterr().err


def test_one_file_is_enough(capsys, folder):
    assert run(["check", str(folder / "plug/mod.py"), "--sglang", "0.5.23"]) == 1
    assert "1 file, checked" in capsys.readouterr().out


def test_strangers_text_is_escaped(command, folder):
    (folder / "plug/mod.py").write_text(
        "from sglang.srt import \u202eevil\n" if False else "import sglang.srt.\\\nnope\ndef register(): ...\n"
    )
    (folder / "pyproject.toml").write_text(TOML.format("").replace('name = "plug"', 'name = "pl\\u001bug"'))
    _, out, _ = command("--sglang", "0.5.23")
    assert "\x1b" not in out
    assert "pl\\x1bug" in out


def test_runtimes(command, folder):
    (folder / "plug/mod.py").write_text(
        "from sglang.multimodal_gen.runtime.platforms.interface import Platform\nclass P(Platform):\n    pass\ndef register(): ...\n"
    )
    assert command("--sglang", "0.5.23", "--runtime", "srt")[0] == 0
    assert command("--sglang", "0.5.23", "--runtime", "diffusion")[0] == 1
