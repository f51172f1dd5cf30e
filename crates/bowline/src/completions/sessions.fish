
# Completes session arguments.
function __fish_bowline_sessions
    set -lx BOWLINE_SERVER $BOWLINE_SERVER
    if string match -rq -- '--server[= ]+(?<server>\S+)' (commandline -pc)
        set BOWLINE_SERVER $server
    end
    bowline ls --complete (commandline -ct) 2>/dev/null
end
complete -c bowline -n '__fish_seen_subcommand_from attach kill send stop screen log rename restart' -f -a '(__fish_bowline_sessions)'
