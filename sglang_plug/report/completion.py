"""Completion scripts for four shells, from one description of the command tree. Values in, text out."""

from __future__ import annotations

import shlex
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator

PROGRAM = "sglang-plug"


@dataclass(frozen=True)
class Option:
    """One option: its flags, its line of help, and what its value may be (`choices`, or a live `kind`)."""

    flags: tuple[str, ...]
    help: str
    takes_value: bool = False
    choices: tuple[str, ...] = ()
    kind: str | None = None


@dataclass(frozen=True)
class Command:
    """One command: options, commands below it, and what its positional words may be (`words`, or a live `kind`)."""

    name: str
    help: str
    options: tuple[Option, ...]
    children: tuple[Command, ...] = ()
    words: tuple[str, ...] = ()
    kind: str | None = None

    def walk(self, path: tuple[str, ...] = ()) -> Iterator[tuple[tuple[str, ...], Command]]:
        """Yield every command with its path, this one first."""
        yield path, self
        for child in self.children:
            yield from child.walk((*path, child.name))


def render(shell: str, root: Command) -> str:
    """Return the completion script for `bash`, `zsh`, `fish` or `powershell`."""
    return {"bash": _bash, "zsh": _zsh, "fish": _fish, "powershell": _powershell}[shell](root)


HEADER = f"# Completion for {PROGRAM}, made by `{PROGRAM} completion`. Live values come from metadata and the catalogue alone.\n"


def _cases(root: Command, quote: str = "'") -> tuple[list[str], list[str], list[str]]:
    """Return the shell `case` arms: path steps, value sources by `path|flag`, and candidates by path."""
    steps, values, words = [], [], []
    for path, command in root.walk():
        here = " ".join(path)
        steps += [f"      '{here}|{child.name}') path='{' '.join((*path, child.name))}' ;;" for child in command.children]
        for option in command.options:
            if option.takes_value:
                source = f"words {' '.join(option.choices)}" if option.choices else f"live {option.kind}" if option.kind else "none"
                values.append("    " + "|".join(f"'{here}|{flag}'" for flag in option.flags) + f") source={shlex.quote(source)} ;;")
        flags = " ".join(flag for option in command.options for flag in option.flags)
        first = " ".join([*(child.name for child in command.children), *command.words])
        words.append(f"    '{here}') flags={quote}{flags}{quote} first={quote}{first}{quote} kind={quote}{command.kind or ''}{quote} ;;")
    return steps, values, words


_WALK = """\
  local path='' source='' flags='' first='' kind='' word flag='' i
  for ((i = START; i < CURRENT_INDEX; i++)); do
    word=${WORDS[i]}
    case "$path|$word" in
STEPS
    esac
  done
  flag=PREVIOUS
  if [[ $flag == '=' ]]; then flag=BEFORE_PREVIOUS; fi
  case "$path|$flag" in
VALUES
  esac
  case "$path" in
FIRST
  esac
"""


def _bash(root: Command) -> str:
    steps, values, words = _cases(root)
    walk = (
        _WALK.replace("START", "1")
        .replace("CURRENT_INDEX", "COMP_CWORD")
        .replace("BEFORE_PREVIOUS", "${COMP_WORDS[COMP_CWORD-2]}")
        .replace("PREVIOUS", "${COMP_WORDS[COMP_CWORD-1]}")
        .replace("WORDS", "COMP_WORDS", 1)
        .replace("STEPS", "\n".join(steps))
        .replace("VALUES", "\n".join(values))
        .replace("FIRST", "\n".join(words))
    )
    return f"""{HEADER}_sglang_plug() {{
  local cur=${{COMP_WORDS[COMP_CWORD]}}
  if [[ $cur == '=' ]]; then cur=''; fi
  COMPREPLY=()
{walk}\
  _sglang_plug_offer() {{
    case "$1" in
      files) compopt -o filenames 2>/dev/null; mapfile -t COMPREPLY < <(compgen -f -- "$cur") ;;
      ?*) local out
        out=$("${{COMP_WORDS[0]}}" __values "$1" "$cur" 2>/dev/null)
        mapfile -t COMPREPLY < <(compgen -W "$out" -- "$cur")
        if [[ ${{COMPREPLY[0]}} == *. ]]; then compopt -o nospace 2>/dev/null; fi ;;
    esac
  }}
  case "$source" in
    words\\ *) mapfile -t COMPREPLY < <(compgen -W "${{source#words }}" -- "$cur"); return ;;
    live\\ *) _sglang_plug_offer "${{source#live }}"; return ;;
    none) compopt -o default 2>/dev/null; return ;;
  esac
  if [[ $cur == -* ]]; then mapfile -t COMPREPLY < <(compgen -W "$flags" -- "$cur"); return; fi
  if [[ -n $first ]]; then mapfile -t COMPREPLY < <(compgen -W "$first" -- "$cur"); return; fi
  _sglang_plug_offer "$kind"
}}
complete -F _sglang_plug {PROGRAM}
"""


def _zsh(root: Command) -> str:
    steps, values, words = _cases(root)
    walk = (
        _WALK.replace("START", "2")
        .replace("CURRENT_INDEX", "CURRENT")
        .replace("BEFORE_PREVIOUS", "${words[CURRENT-2]}")
        .replace("PREVIOUS", "${words[CURRENT-1]}")
        .replace("WORDS", "words", 1)
        .replace("local path='' source=''", "local where='' source=''")
        .replace("$path|", "$where|")
        .replace('case "$path" in', 'case "$where" in')
        .replace("STEPS", "\n".join(steps).replace(") path=", ") where="))  # `path` is zsh's own array
        .replace("VALUES", "\n".join(values))
        .replace("FIRST", "\n".join(words))
    )
    return f"""#compdef {PROGRAM}
{HEADER}_sglang_plug() {{
{walk}\
  case "$source" in
    words\\ *) compadd -- ${{(s: :)${{source#words }}}}; return ;;
    live\\ *) kind=${{source#live }} first='' ;;
    none) _files; return ;;
    *) if [[ $PREFIX == -* ]]; then compadd -- ${{(s: :)flags}}; return; fi ;;
  esac
  if [[ -n $first ]]; then compadd -- ${{(s: :)first}}; return; fi
  case "$kind" in
    '') ;;
    files) _files ;;
    *) local -a live
      live=(${{(f)"$("${{words[1]}}" __values "$kind" "$PREFIX" 2>/dev/null)"}})
      compadd -S '' -- ${{(M)live:#*.}}
      compadd -- ${{live:#*.}} ;;
  esac
}}
if [[ $zsh_eval_context[-1] == loadautofunc ]]; then _sglang_plug "$@"; else compdef _sglang_plug {PROGRAM}; fi
"""


def _fish(root: Command) -> str:
    lines = [
        HEADER.rstrip(),
        "function __sglang_plug_path",
        "    set -l path ''",
        "    for word in (commandline -opc)[2..-1]",
        '        switch "$path|$word"',
    ]
    for path, command in root.walk():
        here = " ".join(path)
        lines += [
            f"            case '{here}|{child.name}'\n                set path '{' '.join((*path, child.name))}'"
            for child in command.children
        ]
    lines += [
        "        end",
        "    end",
        '    test "$path" = "$argv[1]"',
        "end",
        "function __sglang_plug_values",
        f"    {PROGRAM} __values $argv[1] (commandline -ct) 2>/dev/null",
        "end",
        f"complete -c {PROGRAM} -f",
    ]
    for path, command in root.walk():
        when = f"-n \"__sglang_plug_path '{' '.join(path)}'\""
        start = f"complete -c {PROGRAM} {when}"
        lines += [f"{start} -a {child.name} -d {_fish_quote(child.help)}" for child in command.children]
        if command.words:
            lines.append(f"{start} -a '{' '.join(command.words)}'")
        if command.kind:
            lines.append(f"{start} -F" if command.kind == "files" else f"{start} -a '(__sglang_plug_values {command.kind})'")
        for option in command.options:
            flags = " ".join(f"-l {flag[2:]}" if flag.startswith("--") else f"-s {flag[1:]}" for flag in option.flags)
            lines.append(f"{start} {flags}{_fish_value(option)} -d {_fish_quote(option.help)}")
    return "\n".join(lines) + "\n"


def _fish_value(option: Option) -> str:
    if not option.takes_value:
        return ""
    if option.choices:
        return f" -xa '{' '.join(option.choices)}'"
    if option.kind and option.kind != "files":
        return f" -xa '(__sglang_plug_values {option.kind})'"
    return " -rF"


def _fish_quote(text: str) -> str:
    return "'" + text.replace("\\", "\\\\").replace("'", "\\'") + "'"


def _powershell(root: Command) -> str:
    def table(command: Command, path: tuple[str, ...]) -> str:
        flags = "; ".join(f"'{flag}' = '{_source(option)}'" for option in command.options for flag in option.flags)
        first = ", ".join(f"'{word}'" for word in [*(child.name for child in command.children), *command.words])
        return f"    '{' '.join(path)}' = @{{ flags = @{{ {flags} }}; first = @({first}); kind = '{command.kind or ''}' }}"

    body = "\n".join(table(command, path) for path, command in root.walk())
    return f"""{HEADER}Register-ArgumentCompleter -Native -CommandName {PROGRAM} -ScriptBlock {{
  param($wordToComplete, $commandAst, $cursorPosition)
  $commands = @{{
{body}
  }}
  $words = @($commandAst.CommandElements | ForEach-Object {{ $_.ToString() }})
  if ($wordToComplete -ne '') {{ $words = @($words | Select-Object -SkipLast 1) }}
  $path = ''
  foreach ($word in @($words | Select-Object -Skip 1)) {{
    $next = "$path $word".Trim()
    if ($commands.ContainsKey($next)) {{ $path = $next }}
  }}
  $here = $commands[$path]
  $source = if ($words.Count -gt 1) {{ $here.flags[$words[-1]] }} else {{ $null }}
  if (-not $source) {{
    $found = if ($wordToComplete.StartsWith('-')) {{ $here.flags.Keys }} elseif ($here.first.Count) {{ $here.first }} else {{ $null }}
    $source = if ($found) {{ 'words ' + ($found -join ' ') }} elseif ($here.kind) {{ 'live ' + $here.kind }} else {{ '' }}
  }}
  $kind, $rest = $source -split ' ', 2
  $found = switch ($kind) {{
    'words' {{ $rest -split ' ' }}
    'live' {{ if ($rest -ne 'files') {{ & {PROGRAM} __values $rest $wordToComplete 2>$null }} }}
  }}
  $found | Where-Object {{ $_ -like "$wordToComplete*" }} | Sort-Object | ForEach-Object {{
    [System.Management.Automation.CompletionResult]::new($_, $_, 'ParameterValue', $_)
  }}
}}
"""


def _source(option: Option) -> str:
    if not option.takes_value:
        return ""
    return f"words {' '.join(option.choices)}" if option.choices else f"live {option.kind}" if option.kind else "live files"
