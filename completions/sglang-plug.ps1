# Completion for sglang-plug, made by `sglang-plug completion`. Live values come from metadata and the catalogue alone.
Register-ArgumentCompleter -Native -CommandName sglang-plug -ScriptBlock {
  param($wordToComplete, $commandAst, $cursorPosition)
  $commands = @{
    '' = @{ flags = @{ '--version' = ''; '-V' = ''; '--help' = ''; '-h' = '' }; first = @('new-platform', 'new-hook', 'doctor', 'resolve', 'serve', 'hooks', 'check', 'contract', 'list', 'explain', 'completion'); kind = '' }
    'new-platform' = @{ flags = @{ '--runtime' = 'words srt diffusion both'; '--device-type' = 'live files'; '--hooks' = ''; '--no-hooks' = ''; '--sglang' = 'live releases'; '--output' = 'live files'; '--dry-run' = ''; '--force' = ''; '--yes' = ''; '-y' = ''; '--help' = ''; '-h' = '' }; first = @(); kind = '' }
    'new-hook' = @{ flags = @{ '--target' = 'live targets'; '--type' = 'words before after around replace'; '--runtime' = 'words srt diffusion'; '--sglang' = 'live releases'; '--into' = 'live files'; '--output' = 'live files'; '--dry-run' = ''; '--force' = ''; '--yes' = ''; '-y' = ''; '--help' = ''; '-h' = '' }; first = @(); kind = '' }
    'doctor' = @{ flags = @{ '--runtime' = 'words srt diffusion all'; '--python' = 'live files'; '--launch' = 'words script module'; '--select' = 'live codes'; '--ignore' = 'live codes'; '--strict' = ''; '--no-strict' = ''; '--timeout' = 'live files'; '--memory' = 'live files'; '--jobs' = 'live files'; '-j' = 'live files'; '--isolation' = 'words auto fork spawn'; '--verbose' = ''; '-v' = ''; '--format' = 'words text json sarif junit markdown github html'; '-f' = 'words text json sarif junit markdown github html'; '--output' = 'live files'; '-o' = 'live files'; '--help' = ''; '-h' = '' }; first = @(); kind = 'names' }
    'resolve' = @{ flags = @{ '--runtime' = 'words srt diffusion all'; '--python' = 'live files'; '--launch' = 'words script module'; '--sglang' = 'live releases'; '--platform' = 'live platforms'; '--plugins' = 'live hooks'; '--env' = 'live files'; '--hook' = 'live targets'; '--verify' = ''; '--strict' = ''; '--format' = 'words text json mermaid svg'; '-f' = 'words text json mermaid svg'; '--timeout' = 'live files'; '--help' = ''; '-h' = '' }; first = @(); kind = '' }
    'serve' = @{ flags = @{ '--platform' = 'live platforms'; '--plugins' = 'live hooks'; '--runtime' = 'words auto srt diffusion'; '--engine' = 'words auto sglang standin'; '--python' = 'live files'; '--no-preflight' = ''; '--allow' = 'live codes'; '--expect-fingerprint' = 'live files'; '--record' = 'live files'; '--ready-timeout' = 'live files'; '--print-command' = ''; '--format' = 'words shell json dockerfile systemd kubernetes'; '--help' = ''; '-h' = '' }; first = @(); kind = '' }
    'hooks' = @{ flags = @{ '--all' = ''; '--strict' = ''; '--format' = 'words text json trace'; '-f' = 'words text json trace'; '--output' = 'live files'; '-o' = 'live files'; '--help' = ''; '-h' = '' }; first = @(); kind = 'files' }
    'check' = @{ flags = @{ '--sglang' = 'live releases'; '--runtime' = 'words srt diffusion all'; '--select' = 'live codes'; '--ignore' = 'live codes'; '--strict' = ''; '--no-strict' = ''; '--baseline' = 'live files'; '--write-baseline' = 'live files'; '--fix' = ''; '--yes' = ''; '-y' = ''; '--format' = 'words text json sarif junit markdown github'; '-f' = 'words text json sarif junit markdown github'; '--output' = 'live files'; '-o' = 'live files'; '--help' = ''; '-h' = '' }; first = @(); kind = 'files' }
    'contract' = @{ flags = @{ '--help' = ''; '-h' = '' }; first = @('show', 'diff', 'targets', 'build', 'releases'); kind = '' }
    'contract show' = @{ flags = @{ '--method' = 'live methods'; '--runtime' = 'words srt diffusion all'; '--format' = 'words text json'; '-f' = 'words text json'; '--help' = ''; '-h' = '' }; first = @(); kind = 'releases' }
    'contract diff' = @{ flags = @{ '--platform' = ''; '--targets' = 'live files'; '--runtime' = 'words srt diffusion all'; '--format' = 'words text json'; '-f' = 'words text json'; '--help' = ''; '-h' = '' }; first = @(); kind = 'releases' }
    'contract targets' = @{ flags = @{ '--sglang' = 'live releases'; '--limit' = 'live files'; '--format' = 'words text json'; '-f' = 'words text json'; '--help' = ''; '-h' = '' }; first = @(); kind = 'targets' }
    'contract build' = @{ flags = @{ '--release' = 'live files'; '--output' = 'live files'; '-o' = 'live files'; '--help' = ''; '-h' = '' }; first = @(); kind = 'files' }
    'contract releases' = @{ flags = @{ '--format' = 'words text json'; '-f' = 'words text json'; '--help' = ''; '-h' = '' }; first = @(); kind = '' }
    'list' = @{ flags = @{ '--runtime' = 'words srt diffusion all'; '--python' = 'live files'; '--format' = 'words text json'; '-f' = 'words text json'; '--help' = ''; '-h' = '' }; first = @(); kind = '' }
    'explain' = @{ flags = @{ '--help' = ''; '-h' = '' }; first = @(); kind = 'codes' }
    'completion' = @{ flags = @{ '--help' = ''; '-h' = '' }; first = @('bash', 'zsh', 'fish', 'powershell'); kind = '' }
  }
  $words = @($commandAst.CommandElements | ForEach-Object { $_.ToString() })
  if ($wordToComplete -ne '') { $words = @($words | Select-Object -SkipLast 1) }
  $path = ''
  foreach ($word in @($words | Select-Object -Skip 1)) {
    $next = "$path $word".Trim()
    if ($commands.ContainsKey($next)) { $path = $next }
  }
  $here = $commands[$path]
  $source = if ($words.Count -gt 1) { $here.flags[$words[-1]] } else { $null }
  if (-not $source) {
    $found = if ($wordToComplete.StartsWith('-')) { $here.flags.Keys } elseif ($here.first.Count) { $here.first } else { $null }
    $source = if ($found) { 'words ' + ($found -join ' ') } elseif ($here.kind) { 'live ' + $here.kind } else { '' }
  }
  $kind, $rest = $source -split ' ', 2
  $found = switch ($kind) {
    'words' { $rest -split ' ' }
    'live' { if ($rest -ne 'files') { & sglang-plug __values $rest $wordToComplete 2>$null } }
  }
  $found | Where-Object { $_ -like "$wordToComplete*" } | Sort-Object | ForEach-Object {
    [System.Management.Automation.CompletionResult]::new($_, $_, 'ParameterValue', $_)
  }
}
