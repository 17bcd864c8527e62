# Completion for sglang-plug, made by `sglang-plug completion`. Live values come from metadata and the catalogue alone.
_sglang_plug() {
  local typed=${COMP_WORDS[COMP_CWORD]} quote=''
  case "$typed" in
    =) typed='' ;;
    [\"\']*) quote=${typed:0:1} typed=${typed:1} ;;
    *) typed=${typed//\\/} ;;
  esac
  COMPREPLY=()
  local path='' source='' flags='' first='' kind='' word flag='' rest='' i
  for ((i = 1; i < COMP_CWORD; i++)); do
    word=${COMP_WORDS[i]}
    if [[ $word == '--' ]]; then rest=yes; break; fi
    case "$path|$word" in
      '|new-platform') path='new-platform' ;;
      '|new-hook') path='new-hook' ;;
      '|doctor') path='doctor' ;;
      '|resolve') path='resolve' ;;
      '|serve') path='serve' ;;
      '|hooks') path='hooks' ;;
      '|check') path='check' ;;
      '|contract') path='contract' ;;
      '|list') path='list' ;;
      '|explain') path='explain' ;;
      '|completion') path='completion' ;;
      'contract|show') path='contract show' ;;
      'contract|diff') path='contract diff' ;;
      'contract|targets') path='contract targets' ;;
      'contract|build') path='contract build' ;;
      'contract|releases') path='contract releases' ;;
    esac
  done
  flag=${COMP_WORDS[COMP_CWORD-1]}
  if [[ $flag == '=' ]]; then flag=${COMP_WORDS[COMP_CWORD-2]}; fi
  case "$path|$flag" in
    'new-platform|--runtime') source='words srt diffusion both' ;;
    'new-platform|--device-type') source=none ;;
    'new-platform|--sglang') source='live releases' ;;
    'new-platform|--output') source='live files' ;;
    'new-hook|--target') source='live targets' ;;
    'new-hook|--type') source='words before after around replace' ;;
    'new-hook|--runtime') source='words srt diffusion' ;;
    'new-hook|--sglang') source='live releases' ;;
    'new-hook|--into') source='live files' ;;
    'new-hook|--output') source='live files' ;;
    'doctor|--runtime') source='words srt diffusion all' ;;
    'doctor|--python') source='live files' ;;
    'doctor|--launch') source='words script module' ;;
    'doctor|--select') source='live codes' ;;
    'doctor|--ignore') source='live codes' ;;
    'doctor|--timeout') source=none ;;
    'doctor|--memory') source=none ;;
    'doctor|--jobs'|'doctor|-j') source=none ;;
    'doctor|--isolation') source='words auto fork spawn' ;;
    'doctor|--format'|'doctor|-f') source='words text json sarif junit markdown github html' ;;
    'doctor|--output'|'doctor|-o') source='live files' ;;
    'resolve|--runtime') source='words srt diffusion all' ;;
    'resolve|--python') source='live files' ;;
    'resolve|--launch') source='words script module' ;;
    'resolve|--sglang') source='live releases' ;;
    'resolve|--platform') source='live platforms' ;;
    'resolve|--plugins') source='live hooks' ;;
    'resolve|--env') source='live variables' ;;
    'resolve|--hook') source='live targets' ;;
    'resolve|--format'|'resolve|-f') source='words text json mermaid svg' ;;
    'resolve|--timeout') source=none ;;
    'serve|--platform') source='live platforms' ;;
    'serve|--plugins') source='live hooks' ;;
    'serve|--runtime') source='words auto srt diffusion' ;;
    'serve|--engine') source='words auto sglang standin' ;;
    'serve|--python') source='live files' ;;
    'serve|--allow') source='live codes' ;;
    'serve|--expect-fingerprint') source=none ;;
    'serve|--record') source='live files' ;;
    'serve|--ready-timeout') source=none ;;
    'serve|--format') source='words shell json dockerfile systemd kubernetes' ;;
    'hooks|--format'|'hooks|-f') source='words text json trace' ;;
    'hooks|--output'|'hooks|-o') source='live files' ;;
    'check|--sglang') source='live releases' ;;
    'check|--runtime') source='words srt diffusion all' ;;
    'check|--select') source='live codes' ;;
    'check|--ignore') source='live codes' ;;
    'check|--baseline') source='live files' ;;
    'check|--write-baseline') source='live files' ;;
    'check|--format'|'check|-f') source='words text json sarif junit markdown github' ;;
    'check|--output'|'check|-o') source='live files' ;;
    'contract show|--method') source='live methods' ;;
    'contract show|--runtime') source='words srt diffusion all' ;;
    'contract show|--format'|'contract show|-f') source='words text json' ;;
    'contract diff|--targets') source='live targets' ;;
    'contract diff|--runtime') source='words srt diffusion all' ;;
    'contract diff|--format'|'contract diff|-f') source='words text json' ;;
    'contract targets|--sglang') source='live releases' ;;
    'contract targets|--limit') source=none ;;
    'contract targets|--format'|'contract targets|-f') source='words text json' ;;
    'contract build|--release') source=none ;;
    'contract build|--output'|'contract build|-o') source='live files' ;;
    'contract releases|--format'|'contract releases|-f') source='words text json' ;;
    'list|--runtime') source='words srt diffusion all' ;;
    'list|--python') source='live files' ;;
    'list|--format'|'list|-f') source='words text json' ;;
  esac
  case "$path" in
    '') flags='--version -V --help -h' first='new-platform new-hook doctor resolve serve hooks check contract list explain completion' kind='' ;;
    'new-platform') flags='--runtime --device-type --hooks --no-hooks --sglang --output --dry-run --force --yes -y --help -h' first='' kind='' ;;
    'new-hook') flags='--target --type --runtime --sglang --into --output --dry-run --force --yes -y --help -h' first='' kind='' ;;
    'doctor') flags='--runtime --python --launch --select --ignore --strict --no-strict --timeout --memory --jobs -j --isolation --verbose -v --format -f --output -o --help -h' first='' kind='names' ;;
    'resolve') flags='--runtime --python --launch --sglang --platform --plugins --env --hook --verify --strict --format -f --timeout --help -h' first='' kind='' ;;
    'serve') flags='--platform --plugins --runtime --engine --python --no-preflight --allow --expect-fingerprint --record --ready-timeout --print-command --format --help -h' first='' kind='files' ;;
    'hooks') flags='--all --strict --format -f --output -o --help -h' first='' kind='files' ;;
    'check') flags='--sglang --runtime --select --ignore --strict --no-strict --baseline --write-baseline --fix --yes -y --format -f --output -o --help -h' first='' kind='files' ;;
    'contract') flags='--help -h' first='show diff targets build releases' kind='' ;;
    'contract show') flags='--method --runtime --format -f --help -h' first='' kind='releases' ;;
    'contract diff') flags='--platform --targets --runtime --format -f --help -h' first='' kind='releases' ;;
    'contract targets') flags='--sglang --limit --format -f --help -h' first='' kind='targets' ;;
    'contract build') flags='--release --output -o --help -h' first='' kind='files' ;;
    'contract releases') flags='--format -f --help -h' first='' kind='' ;;
    'list') flags='--runtime --python --format -f --help -h' first='' kind='' ;;
    'explain') flags='--help -h' first='' kind='codes' ;;
    'completion') flags='--help -h' first='bash zsh fish powershell' kind='' ;;
  esac
  case "$source" in
    words\ *) first=${source#words } ;;
    live\ *) kind=${source#live } first='' ;;
    none) first='' kind='' ;;
    *) if [[ $typed == -* && -z $rest ]]; then first=$flags; fi ;;
  esac
  if [[ -n $first ]]; then mapfile -t COMPREPLY < <(compgen -W "$first" -- "$typed"); return; fi
  case "$kind" in
    '') ;;
    files) compopt -o filenames 2>/dev/null; mapfile -t COMPREPLY < <(compgen -f -- "$typed") ;;
    *) while IFS= read -r word; do  # never `compgen -W`, which would run what a name holds
        if [[ -z $quote ]]; then printf -v word %q "$word"; fi
        COMPREPLY+=("$word")
      done < <("${COMP_WORDS[0]/#\~/$HOME}" __values "$kind" "$typed" 2>/dev/null)
      if [[ ${COMPREPLY[0]} == *[.=] ]]; then compopt -o nospace 2>/dev/null; fi ;;
  esac
}
complete -F _sglang_plug sglang-plug
