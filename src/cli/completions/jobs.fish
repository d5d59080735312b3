# Names of jobs, where a job is wanted.
function __cronward_jobs
    set -l words (commandline -opc) (commandline -ct)
    test (count (commandline -ct)) -eq 0; and set -a words ""
    command $words[1] completions --names -- $words 2>/dev/null
end

complete -c cronward -n '__cronward_jobs | string length -q' -f -a '(__cronward_jobs)'
complete -c cronward -n '__fish_seen_subcommand_from attempts exec' -l job -x -a '(__cronward_jobs)'
