# Completion for sglang-plug, made by `sglang-plug completion`. Live values come from metadata and the catalogue alone.
Register-ArgumentCompleter -Native -CommandName sglang-plug -ScriptBlock {
  param($wordToComplete, $commandAst, $cursorPosition)
  $commands = @{
    '' = @{ flags = @{ '--version' = ''; '-V' = ''; '--help' = ''; '-h' = '' }; first = @('new-platform', 'new-hook', 'doctor', 'resolve', 'serve', 'hooks', 'check', 'contract', 'list', 'explain', 'completion'); kind = '' }
    'new-platform' = @{ flags = @{ '--runtime' = 'words srt diffusion both'; '--device-type' = 'none'; '--hooks' = ''; '--no-hooks' = ''; '--sglang' = 'live releases'; '--output' = 'live files'; '--dry-run' = ''; '--force' = ''; '--yes' = ''; '-y' = ''; '--help' = ''; '-h' = '' }; first = @(); kind = '' }
    'new-hook' = @{ flags = @{ '--target' = 'live targets'; '--type' = 'words before after around replace'; '--runtime' = 'words srt diffusion'; '--sglang' = 'live releases'; '--into' = 'live files'; '--output' = 'live files'; '--dry-run' = ''; '--force' = ''; '--yes' = ''; '-y' = ''; '--help' = ''; '-h' = '' }; first = @(); kind = '' }
    'doctor' = @{ flags = @{ '--runtime' = 'words srt diffusion all'; '--python' = 'live files'; '--launch' = 'words script module'; '--select' = 'live codes'; '--ignore' = 'live codes'; '--strict' = ''; '--no-strict' = ''; '--timeout' = 'none'; '--memory' = 'none'; '--jobs' = 'none'; '-j' = 'none'; '--isolation' = 'words auto fork spawn'; '--verbose' = ''; '-v' = ''; '--format' = 'words text json sarif junit markdown github html'; '-f' = 'words text json sarif junit markdown github html'; '--output' = 'live files'; '-o' = 'live files'; '--help' = ''; '-h' = '' }; first = @(); kind = 'names' }
    'resolve' = @{ flags = @{ '--runtime' = 'words srt diffusion all'; '--python' = 'live files'; '--launch' = 'words script module'; '--sglang' = 'live releases'; '--platform' = 'live platforms'; '--plugins' = 'live hooks'; '--env' = 'live variables'; '--hook' = 'live targets'; '--verify' = ''; '--strict' = ''; '--format' = 'words text json mermaid svg'; '-f' = 'words text json mermaid svg'; '--timeout' = 'none'; '--help' = ''; '-h' = '' }; first = @(); kind = '' }
    'serve' = @{ flags = @{ '--platform' = 'live platforms'; '--plugins' = 'live hooks'; '--runtime' = 'words auto srt diffusion'; '--engine' = 'words auto sglang standin'; '--python' = 'live files'; '--no-preflight' = ''; '--allow' = 'live codes'; '--expect-fingerprint' = 'none'; '--record' = 'live files'; '--ready-timeout' = 'none'; '--print-command' = ''; '--format' = 'words shell json dockerfile systemd kubernetes'; '--help' = ''; '-h' = '' }; first = @(); kind = 'files' }
    'hooks' = @{ flags = @{ '--all' = ''; '--strict' = ''; '--format' = 'words text json trace'; '-f' = 'words text json trace'; '--output' = 'live files'; '-o' = 'live files'; '--help' = ''; '-h' = '' }; first = @(); kind = 'files' }
    'check' = @{ flags = @{ '--sglang' = 'live releases'; '--runtime' = 'words srt diffusion all'; '--select' = 'live codes'; '--ignore' = 'live codes'; '--strict' = ''; '--no-strict' = ''; '--baseline' = 'live files'; '--write-baseline' = 'live files'; '--fix' = ''; '--yes' = ''; '-y' = ''; '--format' = 'words text json sarif junit markdown github'; '-f' = 'words text json sarif junit markdown github'; '--output' = 'live files'; '-o' = 'live files'; '--help' = ''; '-h' = '' }; first = @(); kind = 'files' }
    'contract' = @{ flags = @{ '--help' = ''; '-h' = '' }; first = @('show', 'diff', 'targets', 'build', 'releases'); kind = '' }
    'contract show' = @{ flags = @{ '--method' = 'live methods'; '--runtime' = 'words srt diffusion all'; '--format' = 'words text json'; '-f' = 'words text json'; '--help' = ''; '-h' = '' }; first = @(); kind = 'releases' }
    'contract diff' = @{ flags = @{ '--platform' = ''; '--targets' = 'live targets'; '--runtime' = 'words srt diffusion all'; '--format' = 'words text json'; '-f' = 'words text json'; '--help' = ''; '-h' = '' }; first = @(); kind = 'releases' }
    'contract targets' = @{ flags = @{ '--sglang' = 'live releases'; '--limit' = 'none'; '--format' = 'words text json'; '-f' = 'words text json'; '--help' = ''; '-h' = '' }; first = @(); kind = 'targets' }
    'contract build' = @{ flags = @{ '--release' = 'none'; '--output' = 'live files'; '-o' = 'live files'; '--help' = ''; '-h' = '' }; first = @(); kind = 'files' }
    'contract releases' = @{ flags = @{ '--format' = 'words text json'; '-f' = 'words text json'; '--help' = ''; '-h' = '' }; first = @(); kind = '' }
    'list' = @{ flags = @{ '--runtime' = 'words srt diffusion all'; '--python' = 'live files'; '--format' = 'words text json'; '-f' = 'words text json'; '--help' = ''; '-h' = '' }; first = @(); kind = '' }
    'explain' = @{ flags = @{ '--help' = ''; '-h' = '' }; first = @(); kind = 'codes' }
    'completion' = @{ flags = @{ '--help' = ''; '-h' = '' }; first = @('bash', 'zsh', 'fish', 'powershell'); kind = '' }
  }
  $tool = $commandAst.CommandElements[0].ToString()
  $words = @($commandAst.CommandElements | Select-Object -Skip 1 | ForEach-Object { $_.ToString() })
  if ($wordToComplete -ne '') { $words = @($words | Select-Object -SkipLast 1) }
  $path = ''
  $rest = $false
  foreach ($word in $words) {
    if ($word -ceq '--') { $rest = $true; break }
    $next = "$path $word".Trim()
    if ($commands.ContainsKey($next)) { $path = $next }
  }
  $here = $commands[$path]
  $typed, $lead, $flag = $wordToComplete.Trim("'", '"'), '', $(if ($words.Count) { $words[-1] })
  if ($typed -match '^(--[^=]+)=(.*)$') { $flag, $lead, $typed = $Matches[1], "$($Matches[1])=", $Matches[2] }
  $source = if ($flag) { $here.flags[$flag] }
  if (-not $source) {
    $first = if ($typed.StartsWith('-') -and -not $rest) { $here.flags.Keys } else { $here.first }
    $source = if ($first) { "words $first" } elseif ($here.kind) { "live $($here.kind)" } else { '' }
  }
  $kind, $value = $source -split ' ', 2
  $found = switch ($kind) {
    'words' { $value -split ' ' }
    'live' { if ($value -ne 'files') { & $tool __values $value $typed 2>$null } }
  }
  $found | Where-Object { $_ -and $_.StartsWith($typed, 'Ordinal') } | Sort-Object | ForEach-Object {
    $text = if ($_ -match '[^\w.,=/-]') { "'" + $_.Replace("'", "''") + "'" } else { $_ }
    [System.Management.Automation.CompletionResult]::new($lead + $text, $_, 'ParameterValue', $_)
  }
}
