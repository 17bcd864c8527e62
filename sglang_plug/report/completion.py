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


def _cases(root: Command) -> tuple[list[str], list[str], list[str]]:
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
        words.append(f"    '{here}') flags='{flags}' first='{first}' kind='{command.kind or ''}' ;;")
    return steps, values, words


_WALK = """\
  local path='' source='' flags='' first='' kind='' word flag='' rest='' i
  for ((i = START; i < CURRENT_INDEX; i++)); do
    word=${WORDS[i]}
    if [[ $word == '--' ]]; then rest=yes; break; fi
    case "$path|$word" in
STEPS
    esac
  done
  FLAG
  case "$path|$flag" in
VALUES
  esac
  case "$path" in
FIRST
  esac
  case "$source" in
    words\\ *) first=${source#words } ;;
    live\\ *) kind=${source#live } first='' ;;
    none) first='' kind='' ;;
    *) if [[ $typed == -* && -z $rest ]]; then first=$flags; fi ;;
  esac
"""


def _walk(root: Command, **parts: str) -> str:
    """Return the part that bash and zsh share: it finds the command, and what can stand at the cursor."""
    steps, values, words = _cases(root)
    text = _WALK.replace("STEPS", "\n".join(steps)).replace("VALUES", "\n".join(values)).replace("FIRST", "\n".join(words))
    for name, part in parts.items():
        text = text.replace(name, part)
    return text


def _bash(root: Command) -> str:
    walk = _walk(
        root,
        START="1",
        CURRENT_INDEX="COMP_CWORD",
        WORDS="COMP_WORDS",
        FLAG="flag=${COMP_WORDS[COMP_CWORD-1]}\n  if [[ $flag == '=' ]]; then flag=${COMP_WORDS[COMP_CWORD-2]}; fi",
    )
    return f"""{HEADER}_sglang_plug() {{
  local typed=${{COMP_WORDS[COMP_CWORD]}} quote=''
  case "$typed" in
    =) typed='' ;;
    [\\"\\']*) quote=${{typed:0:1}} typed=${{typed:1}} ;;
    *) typed=${{typed//\\\\/}} ;;
  esac
  COMPREPLY=()
{walk}\
  if [[ -n $first ]]; then mapfile -t COMPREPLY < <(compgen -W "$first" -- "$typed"); return; fi
  case "$kind" in
    '') ;;
    files) compopt -o filenames 2>/dev/null; mapfile -t COMPREPLY < <(compgen -f -- "$typed") ;;
    *) while IFS= read -r word; do  # never `compgen -W`, which would run what a name holds
        if [[ -z $quote ]]; then printf -v word %q "$word"; fi
        COMPREPLY+=("$word")
      done < <("${{COMP_WORDS[0]/#\\~/$HOME}}" __values "$kind" "$typed" 2>/dev/null)
      if [[ ${{COMPREPLY[0]}} == *[.=] ]]; then compopt -o nospace 2>/dev/null; fi ;;
  esac
}}
complete -F _sglang_plug {PROGRAM}
"""


def _zsh(root: Command) -> str:
    walk = _walk(
        root,
        START="2",
        CURRENT_INDEX="CURRENT",
        WORDS="words",
        FLAG="flag=${words[CURRENT-1]}\n  if [[ $PREFIX == --*=* ]]; then flag=${PREFIX%%=*}; compset -P 1 '*='; fi\n  typed=$PREFIX",
    ).replace("path", "where")  # `path` is zsh's own array
    return f"""#compdef {PROGRAM}
{HEADER}_sglang_plug() {{
  local typed=''
{walk}\
  if [[ -n $first ]]; then compadd -- ${{(s: :)first}}; return; fi
  case "$kind" in
    '') ;;
    files) _files ;;
    *) local -a live
      live=(${{(f)"$("${{(Q)words[1]/#\\~/$HOME}}" __values "$kind" "${{(Q)PREFIX}}" 2>/dev/null)"}})
      compadd -S '' -- ${{(M)live:#*[.=]}}
      compadd -- ${{live:#*[.=]}} ;;
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
        "    set -l typed (commandline -ct | string replace -r '^--[^=]*=' '' | string unescape)",
        "    set -l tool (commandline -opc)[1]",
        '    command $tool __values $argv[1] "$typed" 2>/dev/null',
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
    return " -rF" if option.kind else " -x"


def _fish_quote(text: str) -> str:
    return "'" + text.replace("\\", "\\\\").replace("'", "\\'") + "'"


def _powershell(root: Command) -> str:
    def table(command: Command, path: tuple[str, ...]) -> str:
        flags = "; ".join(f"'{flag}' = '{_source(option)}'" for option in command.options for flag in option.flags)
        first = ", ".join(f"'{word}'" for word in [*(child.name for child in command.children), *command.words])
        return f"    '{' '.join(path)}' = @{{ flags = @{{ {flags} }}; first = @({first}); kind = '{command.kind or ''}' }}"

    body = "\n".join(table(command, path) for path, command in root.walk())
    return rf"""{HEADER}Register-ArgumentCompleter -Native -CommandName {PROGRAM} -ScriptBlock {{
  param($wordToComplete, $commandAst, $cursorPosition)
  $commands = @{{
{body}
  }}
  $tool = $commandAst.CommandElements[0].ToString()
  $words = @($commandAst.CommandElements | Select-Object -Skip 1 | ForEach-Object {{ $_.ToString() }})
  if ($wordToComplete -ne '') {{ $words = @($words | Select-Object -SkipLast 1) }}
  $path = ''
  $rest = $false
  foreach ($word in $words) {{
    if ($word -ceq '--') {{ $rest = $true; break }}
    $next = "$path $word".Trim()
    if ($commands.ContainsKey($next)) {{ $path = $next }}
  }}
  $here = $commands[$path]
  $typed, $lead, $flag = $wordToComplete.Trim("'", '"'), '', $(if ($words.Count) {{ $words[-1] }})
  if ($typed -match '^(--[^=]+)=(.*)$') {{ $flag, $lead, $typed = $Matches[1], "$($Matches[1])=", $Matches[2] }}
  $source = if ($flag) {{ $here.flags[$flag] }}
  if (-not $source) {{
    $first = if ($typed.StartsWith('-') -and -not $rest) {{ $here.flags.Keys }} else {{ $here.first }}
    $source = if ($first) {{ "words $first" }} elseif ($here.kind) {{ "live $($here.kind)" }} else {{ '' }}
  }}
  $kind, $value = $source -split ' ', 2
  $found = switch ($kind) {{
    'words' {{ $value -split ' ' }}
    'live' {{ if ($value -ne 'files') {{ & $tool __values $value $typed 2>$null }} }}
  }}
  $found | Where-Object {{ $_ -and $_.StartsWith($typed, 'Ordinal') }} | Sort-Object | ForEach-Object {{
    $text = if ($_ -match '[^\w.,=/-]') {{ "'" + $_.Replace("'", "''") + "'" }} else {{ $_ }}
    [System.Management.Automation.CompletionResult]::new($lead + $text, $_, 'ParameterValue', $_)
  }}
}}
"""


def _source(option: Option) -> str:
    if not option.takes_value:
        return ""
    return f"words {' '.join(option.choices)}" if option.choices else f"live {option.kind}" if option.kind else "none"
