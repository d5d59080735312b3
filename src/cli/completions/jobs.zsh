# Names of jobs, where a job is wanted; everything else is completed by the function above.
_cronward() {
    local -a names
    names=(${(f)"$(_call_program jobs ${(q)words[1]} completions --names -- "${(q@)words[1,CURRENT]}" 2>/dev/null)"})
    if (( $#names )); then
        compset -P '--job='
        compadd -a names
    else
        _cronward_words "$@"
    fi
}

if [ "$funcstack[1]" = "_cronward" ]; then
    _cronward "$@"
else
    compdef _cronward cronward
fi
