"""Templates turned into texts. Owns the call of cookiecutter; writes nowhere but in a temporary folder of its own.

Answers are handed over as finished values: cookiecutter never renders them, so a user's text is never read as a template.
"""

from __future__ import annotations

import tempfile
from pathlib import Path
from typing import Any

from sglang_plug.data import data_dir
from sglang_plug.errors import ScaffoldError

KEPT_EMPTY = frozenset({"py.typed", "__init__.py"})


def render(template: str, answers: dict[str, Any]) -> dict[str, str]:
    """Return the files of `template`, path to text, sorted; paths start below the generated folder.

    A file that renders to nothing is not part of the package: that is how a template leaves a whole file out.

    Args:
        template: a folder of `templates/`.
        answers: values for the names in the template's `cookiecutter.json`, all of them known there.

    Raises:
        KeyError: an answer that the template does not ask for.
        ScaffoldError: there is no room for temporary files.
        cookiecutter.exceptions.CookiecutterException: the template itself is broken.
    """
    import json

    from cookiecutter.generate import generate_files

    source = data_dir("templates") / template
    context = json.loads((source / "cookiecutter.json").read_text(encoding="utf-8"))
    unknown = answers.keys() - context.keys()
    if unknown:
        raise KeyError(f"{template} does not ask for {', '.join(sorted(unknown))}")
    try:
        with tempfile.TemporaryDirectory(prefix="sglang-plug-") as scratch:
            made = generate_files(source, {"cookiecutter": {**context, **answers}}, scratch, accept_hooks=False)
            return dict(sorted(_texts(Path(made))))
    except OSError as exc:
        cause, hint = exc.strerror or str(exc), "make room there, or name another folder for temporary files in TMPDIR"
        raise ScaffoldError("nothing was written: temporary files cannot be", subject=exc.filename, cause=cause, hint=hint) from exc


def _texts(root: Path) -> list[tuple[str, str]]:
    found = []
    for path in root.rglob("*"):
        if path.is_dir():
            continue
        text = path.read_text(encoding="utf-8")
        if text.strip() or path.name in KEPT_EMPTY:
            found.append((path.relative_to(root).as_posix(), text))
    return found
