(( $+functions[_bowline_sessions] )) ||
_bowline_sessions() {
    local -a sessions
    local -x BOWLINE_SERVER=$BOWLINE_SERVER
    local i
    for (( i = 2; i <= $#bowline_words; i++ )); do
        case $bowline_words[i] in
            (--server) BOWLINE_SERVER=${(Q)bowline_words[i+1]} ;;
            (--server=*) BOWLINE_SERVER=${(Q)bowline_words[i]#*=} ;;
        esac
    done
    sessions=(${(f)"$(${(Q)bowline_words[1]} ls --complete "$PREFIX" 2>/dev/null)"})
    compadd -a sessions
}
