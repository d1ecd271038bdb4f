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

# What may follow option $1 of the command `${@:2}`: words, "files", or nothing if it is a flag.
_nowcalls_values() {
  "${@:2}" --help 2>/dev/null | awk -v option="$1" '
    $1 == option || $1 ~ "," option "$" {
      if ($0 ~ option "(  |$)") exit  # A flag: its help begins two columns on.
      if (match($2, /[{].*[}]/)) print substr($2, RSTART + 1, RLENGTH - 2); else print "files"
      exit
    }' | tr ',' '\n'
}

_nowcalls() {
  local current=${COMP_WORDS[COMP_CWORD]} command=("${COMP_WORDS[0]}") word values
  local previous=${COMP_WORDS[COMP_CWORD - 1]}
  for word in "${COMP_WORDS[@]:1:COMP_CWORD-1}"; do
    [[ $word == -- ]] && return  # What follows is a command of its own.
    [[ $word == -* ]] || ! _nowcalls_words "${command[@]}" | grep -qxF -e "$word" ||
      command+=("$word")
  done
  COMPREPLY=()
  if [[ $previous == -* ]]; then
    values=$(_nowcalls_values "$previous" "${command[@]}")
    [[ $values == files ]] && return  # readline completes files.
    [[ -n $values ]] && mapfile -t COMPREPLY < <(compgen -W "$values" -- "$current") && return
  fi
  mapfile -t COMPREPLY < <(compgen -W "$(_nowcalls_words "${command[@]}")" -- "$current")
}

complete -o default -F _nowcalls nowcalls nowcalls-admin nowcalls-bench nowcalls-server
