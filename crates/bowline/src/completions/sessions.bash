
# Completes session arguments; _bowline completes everything else.
_bowline_sessions() {
    local line=${COMP_LINE:0:COMP_POINT} words=() word server= verb= sessions=0 i
    # Not COMP_WORDS, which bash splits at each colon of a URL.
    read -ra words <<< "$line"
    [[ $line == *[[:space:]] ]] || unset 'words[-1]'
    for (( i = 1; i < ${#words[@]}; i++ )); do
        word=${words[i]}
        case $word in
            --server=*) server=${word#*=} ;;
            --server) server=${words[++i]-} ;;
            OPTIONS_WITH_VALUES) (( ++i )) ;;
            -*) ;;
            *) if [[ $verb ]]; then (( ++sessions )); else verb=$word; fi ;;
        esac
    done
    # The word is an option or the value of one.
    [[ $i -gt ${#words[@]} || $2 == -* ]] && return 1
    case $verb in
        kill) ;;
        attach|send|stop|screen|log|rename|restart) [[ $sessions -eq 0 ]] || return 1 ;;
        *) return 1 ;;
    esac
    [[ $server ]] && local -x BOWLINE_SERVER=$server
    compopt +o bashdefault +o default 2>/dev/null
    local IFS=$'\n'
    COMPREPLY=( $("$1" ls --complete "$2" 2>/dev/null) )
    return 0
}

_bowline_or_sessions() {
    _bowline_sessions "$@" && return
    _bowline "$@"
    # Drop the placeholders of arguments, such as [TEXT]...
    local word words=("${COMPREPLY[@]}")
    COMPREPLY=()
    for word in "${words[@]}"; do
        [[ $word == [\[\<]* ]] || COMPREPLY+=("$word")
    done
}

complete -F _bowline_or_sessions -o bashdefault -o default bowline
