# nightsafe: what all commands share.

set -u -o pipefail
umask 077
LC_ALL=C
STORE=${NIGHTSAFE_STORE-}
ME=${0##*/}
TAB=$'\t'

# An ID in a catalogue, of today's kind, with a number where there were several in a second, or a day alone.
ID='[0-9]{8}(-[0-9]{6}(-([2-9]|[1-9][0-9]+))?)?'
FIRST_FORM="^($ID) ([0-9]+) (-|[0-9a-f]{32}) (/.*)\$"
SECOND_FORM="^2$TAB($ID)$TAB([0-9]+)$TAB([0-9a-f]{32}|[0-9a-f]{64})$TAB([^$TAB]+)\$"

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

# check_store: end where there is none.
check_store() {
    [[ $STORE == /* && -d $STORE ]] || fail_about 2 'bad store' "$STORE"
}

# check_customer NAME: end where it is none, or there is no store.
check_customer() {
    check_store
    [[ $1 =~ ^[a-z0-9][a-z0-9-]{0,31}$ ]] || fail_about 2 'bad customer' "$1"
    HOME_OF=$STORE/$1
}

# need_customer NAME: end where it is none, or is not in the store.
need_customer() {
    check_customer "$1"
    [[ -d $HOME_OF && ! -L $HOME_OF ]] || fail_about 1 'no such customer' "$1"
    read_catalogue
}

# lock SECONDS: wait until no other command changes what the customer has; false where there is no such directory any more.
# The directory itself is what is locked, so that nothing is left of it. Without SECONDS it takes as long as it takes.
lock() {
    [[ -d $HOME_OF && ! -L $HOME_OF ]] && { exec 9< "$HOME_OF"; } 2> /dev/null || return 1
    if [[ $1 == 0 ]]; then
        flock -n 9
    else
        flock ${1:+-w "$1"} 9
    fi || fail 4 "busy: ${HOME_OF##*/}"
    [[ $HOME_OF -ef /proc/self/fd/9 ]] || return 1
    local left=("$HOME_OF"/.part-*)
    [[ ! -e ${left[0]} && ! -L ${left[0]} ]] || rm -f -- "${left[@]}"
}

# has NAME: whether the customer has a file of this name; end where it is not ours.
has() {
    local file=$HOME_OF/$1
    [[ -e $file || -L $file ]] || return 1
    [[ -f $file && ! -L $file ]] || fail 1 "not ours: $1"
}

# Read the customer's catalogue into IDS, in their order, and the tables BYTES, SUMS and DIRECTORIES; LINES has its
# lines, OF_LINE their IDs, BROKEN the numbers of those that are none, and UNENDED is set where the last has no line feed.
read_catalogue() {
    local line sorted
    IDS=()
    LINES=()
    OF_LINE=()
    BROKEN=()
    UNENDED=
    declare -gA BYTES=() SUMS=() DIRECTORIES=()
    has catalogue || return 0
    while IFS= read -r line || { [[ -n $line ]] && UNENDED=yes; }; do
        LINES+=("$line")
        if [[ $line =~ $SECOND_FORM ]]; then
            REPLY=${BASH_REMATCH[7]}
        elif [[ $line =~ $FIRST_FORM ]]; then
            written "${BASH_REMATCH[7]}"
        else
            BROKEN+=("${#LINES[@]}")
            OF_LINE+=(-)
            continue
        fi
        IDS+=("${BASH_REMATCH[1]}")
        OF_LINE+=("${BASH_REMATCH[1]}")
        BYTES[${BASH_REMATCH[1]}]=${BASH_REMATCH[5]}
        SUMS[${BASH_REMATCH[1]}]=${BASH_REMATCH[6]}
        DIRECTORIES[${BASH_REMATCH[1]}]=$REPLY
    done < "$HOME_OF/catalogue"
    ((${#IDS[@]} < 2)) || { sorted=$(printf '%s\n' "${IDS[@]}" | LC_ALL=C sort -t - -k 1,2 -k 3,3n) && mapfile -t IDS <<< "$sorted"; } || fail 1 'cannot sort'
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

# replace_catalogue: put what comes from standard input in the place of the catalogue, or leave it as it is.
replace_catalogue() {
    local part=$HOME_OF/.part-catalogue
    cat > "$part" && mv -- "$part" "$HOME_OF/catalogue" || {
        rm -f -- "$part"
        return 1
    }
}

# close_up: leave all that the customer has to the owner alone.
close_up() {
    find "$HOME_OF" \( -type d ! -perm 700 -exec chmod 700 {} + \) -o \( -type f ! -perm 600 -exec chmod 600 {} + \)
}

# strike ID...: take the lines of these backups out of the catalogue.
strike() {
    local -A gone=()
    local id number
    for id; do
        gone[$id]=yes
    done
    for number in "${!LINES[@]}"; do
        [[ -z ${gone[${OF_LINE[$number]}]-} ]] || continue
        printf '%s' "${LINES[$number]}"
        [[ -n $UNENDED && $((number + 1)) == "${#LINES[@]}" ]] || echo
    done | replace_catalogue
}

# say FORMAT WORDS...: print, and end where that cannot be done.
say() {
    # shellcheck disable=SC2059
    printf "$@" 2> /dev/null || fail 1 'cannot write'
}

# tell_broken: say which lines of the catalogue are none, and end with status 3 if there are any.
tell_broken() {
    local number
    for number in ${BROKEN[@]+"${BROKEN[@]}"}; do
        printf 'nightsafe: catalogue: line %s\n' "$number" >&2
    done
    [[ ${#BROKEN[@]} == 0 ]] || exit 3
}

# sum_of FILE COMMAND: put the checksum into REPLY.
sum_of() {
    REPLY=$("$2" < "$1") && REPLY=${REPLY%% *} && [[ $REPLY =~ ^[0-9a-f]{32,64}$ ]]
}

# state_of ID: put `ok`, `damaged` or `missing` into REPLY.
state_of() {
    local archive wanted=${SUMS[$1]} command=md5sum
    archive_of "$1"
    archive=$REPLY
    REPLY=missing
    [[ -f $archive && ! -L $archive ]] || return 0
    REPLY=damaged
    [[ $(stat -c %s -- "$archive") == "${BYTES[$1]}" ]] || return 0
    if [[ $wanted == - ]]; then
        tar -tf - < "$archive" > /dev/null 2>&1 || return 0
    else
        [[ ${#wanted} == 32 ]] || command=sha256sum
        sum_of "$archive" "$command" || fail 1 "cannot read $1"
        [[ $REPLY == "$wanted" ]] || {
            REPLY=damaged
            return 0
        }
    fi
    REPLY=ok
}
