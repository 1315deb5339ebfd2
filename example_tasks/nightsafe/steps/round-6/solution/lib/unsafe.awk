# Read what `tar -tvP --quoting-style=c` lists, and print a line if one of the entries would lead out of the target.

# The name at the beginning of REST, which is taken off it; `\\"` does not end it.
function quoted(    name) {
    sub(/^[^"]*"/, "", rest)
    match(rest, /^([^"\\]|\\.)*/)
    name = substr(rest, 1, RLENGTH)
    rest = substr(rest, RLENGTH + 2)
    return name
}

# A name without what means nothing in it; what is absolute, or has `..`, is unsafe at once.
function plain(name,    parts, count, at, result) {
    if (name ~ /^\//)
        unsafe = 1
    count = split(name, parts, "/")
    result = ""
    for (at = 1; at <= count; at++) {
        if (parts[at] == "..")
            unsafe = 1
        if (parts[at] != "" && parts[at] != ".")
            result = result "/" parts[at]
    }
    return result
}

{
    kind = substr($0, 1, 1)
    rest = $0
    name = plain(quoted())
    names[name] = 1
    if (kind == "b" || kind == "c")
        unsafe = 1
    if (kind == "l")
        links[name] = 1
    if (kind == "h") {
        target = plain(quoted())
        names[target] = 1
    }
}

END {
    for (name in names) {
        above = name
        while (sub(/\/[^\/]*$/, "", above))
            if (above in links)
                unsafe = 1
    }
    if (unsafe)
        print "unsafe"
}
