# Completion for bash: nowcalls, nowcalls-admin, nowcalls-bench, nowcalls-server. What it offers is
# what the programs' --help says, so it is never older than they are.

# The subcommands and options that `$@ --help` names, a line each.
_nowcalls_words() {
  "$@" --help 2>/dev/null | awk '
    /^Subcommands:/ { subcommands = 1; next }
    /^[^ ]/ { subcommands = 0 }
    subcommands && /^  [a-z]/ { print $1 }
    /^  (-[a-zA-Z],)?--/ { sub(/^.*--/, "--", $1); print $1 }'
}

_nowcalls() {
  local current=${COMP_WORDS[COMP_CWORD]} command=("${COMP_WORDS[0]}") word
  for word in "${COMP_WORDS[@]:1:COMP_CWORD-1}"; do
    [[ $word == -- ]] && return  # What follows is a command of its own.
    [[ $word == -* ]] || ! _nowcalls_words "${command[@]}" | grep -qxF -e "$word" ||
      command+=("$word")
  done
  mapfile -t COMPREPLY < <(compgen -W "$(_nowcalls_words "${command[@]}")" -- "$current")
}

complete -o default -F _nowcalls nowcalls nowcalls-admin nowcalls-bench nowcalls-server
