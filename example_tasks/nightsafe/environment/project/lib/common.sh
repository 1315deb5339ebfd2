# nightsafe: what all commands share.

STORE=$NIGHTSAFE_STORE
ME=`basename $0`

complain() {
    echo -e "nightsafe: $*" >&2
}

die() {
    complain $*
    exit 1
}

usage() {
    echo "usage: $ME $*" >&2
    exit 1
}

# The time, as an ID.
stamp() {
    if [ $NIGHTSAFE_NOW ]; then
        date -d @$NIGHTSAFE_NOW +%Y%m%d-%H%M%S
    else
        date +%Y%m%d-%H%M%S
    fi
}

# Where a customer's things are.
home_of() {
    echo $STORE/$1
}

need_customer() {
    if [ ! -d $STORE/$1 ]; then
        die "no such customer $1"
    fi
}

# The line of a backup: line_of CUSTOMER ID
line_of() {
    grep "^$2" $STORE/$1/catalogue | head -1
}

# A field of a line: field LINE NUMBER
field() {
    echo $1 | cut -d' ' -f$2
}

# The archive of a backup: archive_of CUSTOMER ID
archive_of() {
    if [ -f $STORE/$1/$2.tar ]; then
        echo $STORE/$1/$2.tar
    else
        echo $STORE/$1/$2.tar.gz
    fi
}

sum_of() {
    md5sum $1 | cut -d' ' -f1
}

size_of() {
    ls -l $1 | awk '{ print $5 }'
}

# How large that is, for people.
human() {
    if [ $1 -gt 1048576 ]; then
        printf "%.1f MB" `echo "$1 1048576" | awk '{ print $1 / $2 }'`
    else
        echo "$1 bytes"
    fi
}

# A customer's settings: settings CUSTOMER
settings() {
    keep=7
    if [ -f $STORE/$1/settings ]; then
        . $STORE/$1/settings
    fi
}

# One line more in a catalogue: enter CUSTOMER ID ARCHIVE DIRECTORY
enter() {
    size=`size_of $3`
    sum=`sum_of $3`
    eval "echo \"$2 $size $sum $4\"" >> $STORE/$1/catalogue
}

# A line less in a catalogue: strike CUSTOMER ID
strike() {
    grep -v "^$2" $STORE/$1/catalogue > /tmp/nightsafe.catalogue
    cp /tmp/nightsafe.catalogue $STORE/$1/catalogue
    rm -f /tmp/nightsafe.catalogue
}
