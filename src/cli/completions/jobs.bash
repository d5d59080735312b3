# Names of jobs, where a job is wanted; everything else is completed by the function above.
_cronward_jobs() {
    local names
    names=$("${COMP_WORDS[0]}" completions --names -- "${COMP_WORDS[@]:0:COMP_CWORD+1}" 2>/dev/null)
    if [[ -n $names ]]; then
        local word=${COMP_WORDS[COMP_CWORD]}
        [[ $word == "=" ]] && word=
        mapfile -t COMPREPLY < <(compgen -W "$names" -- "$word")
    else
        _cronward "$@"
    fi
}

complete -F _cronward_jobs -o bashdefault -o default cronward
