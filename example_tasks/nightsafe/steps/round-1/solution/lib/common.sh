# nightsafe: what all commands share.

set -u
LC_ALL=C
STORE=${NIGHTSAFE_STORE-}
ME=${0##*/}
TAB=$'\t'

# An ID in a catalogue, of today's kind or a day alone.
ID='[0-9]{8}(-[0-9]{6})?'
FIRST_FORM="^($ID) ([0-9]+) (-|[0-9a-f]{32}) (/.*)\$"
SECOND_FORM="^2$TAB($ID)$TAB([0-9]+)$TAB([0-9a-f]{32})$TAB([^$TAB]+)\$"

# fail STATUS TEXT: say why, and end.
fail() {
    printf 'nightsafe: %s\n' "$2" >&2
    exit "$1"
}

usage() {
    fail 2 "usage: $ME${1:+ $1}"
}

# written NAME: put it into REPLY as catalogues and messages write it.
written() {
    REPLY=${1//\\/\\\\}
    REPLY=${REPLY//$TAB/\\t}
    REPLY=${REPLY//$'\n'/\\n}
}

# fail_about STATUS TEXT NAME
fail_about() {
    written "$3"
    fail "$1" "$2: $REPLY"
}

# absolute NAME: put it into REPLY with the current directory before it, where it is relative.
absolute() {
    REPLY=$1
    [[ $REPLY == /* ]] || REPLY=$PWD/$REPLY
}

# The time, as an ID.
stamp() {
    TZ=UTC0 printf '%(%Y%m%d-%H%M%S)T' "${NIGHTSAFE_NOW:--1}"
}

# check_customer NAME: end where it is none.
check_customer() {
    [[ $1 =~ ^[a-z0-9][a-z0-9-]{0,31}$ ]] || fail_about 2 'bad customer' "$1"
    HOME_OF=$STORE/$1
}

# need_customer NAME: end where it is none, or is not in the store.
need_customer() {
    check_customer "$1"
    [[ -d $HOME_OF ]] || fail_about 1 'no such customer' "$1"
    read_catalogue
}

# Read the customer's catalogue into IDS, in their order, and the tables BYTES, SUMS and DIRECTORIES.
read_catalogue() {
    local line sorted
    IDS=()
    declare -gA BYTES=() SUMS=() DIRECTORIES=()
    [[ -f $HOME_OF/catalogue ]] || return 0
    while IFS= read -r line || [[ -n $line ]]; do
        if [[ $line =~ $SECOND_FORM ]]; then
            REPLY=${BASH_REMATCH[5]}
        elif [[ $line =~ $FIRST_FORM ]]; then
            written "${BASH_REMATCH[5]}"
        else
            continue
        fi
        IDS+=("${BASH_REMATCH[1]}")
        BYTES[${BASH_REMATCH[1]}]=${BASH_REMATCH[3]}
        SUMS[${BASH_REMATCH[1]}]=${BASH_REMATCH[4]}
        DIRECTORIES[${BASH_REMATCH[1]}]=$REPLY
    done < "$HOME_OF/catalogue"
    ((${#IDS[@]} < 2)) || { sorted=$(printf '%s\n' "${IDS[@]}" | sort) && mapfile -t IDS <<< "$sorted"; } || fail 1 'cannot sort'
}

# need_backup ID: end where the customer has none of this name.
need_backup() {
    [[ $1 =~ ^$ID$ && -n ${BYTES[$1]-} ]] || fail_about 1 'no such backup' "$1"
}

# archive_of ID: put the archive of a backup into REPLY.
archive_of() {
    REPLY=$HOME_OF/$1.tar.gz
    [[ ${SUMS[$1]} != - ]] || REPLY=$HOME_OF/$1.tar
}

sum_of() {
    md5sum < "$1" | cut -d ' ' -f 1
}
