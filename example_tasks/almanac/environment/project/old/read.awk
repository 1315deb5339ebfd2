# Reads the files named on the command line, of all three kinds, and prints a line for each observation, with tabs between:
# the night (the date of its evening), 0 before midnight or 1 after it, the time, the object, who observed, the magnitude,
# the exposure in seconds, the number, the note.
#                                                          Jonas, 2003, and again in 2006, 2013, and never after that

function trim(text) {
  gsub(/^ +| +$/, "", text)
  return text
}

function days(year, month) {
  if (month == 2) return year % 4 == 0 && (year % 100 != 0 || year % 400 == 0) ? 29 : 28
  return month == 4 || month == 6 || month == 9 || month == 11 ? 30 : 31
}

function before(date,    year, month, day) {
  year = substr(date, 1, 4) + 0
  month = substr(date, 6, 2) + 0
  day = substr(date, 9, 2) - 1
  if (day < 1) {
    if (--month < 1) { year--; month = 12 }
    day = days(year, month)
  }
  return sprintf("%04d-%02d-%02d", year, month, day)
}

function flush() {
  if (open) printf "%s\t%d\t%s\t%s\t%s\t%s\t%d\t%s\t%s\n", night, time < "12:00", time, object, observer, magnitude, seconds, number, note
  open = 0
}

FNR == 1 {
  flush()
  kind = FILENAME
  sub(/.*\./, "", kind)
  unit = 60
  held = ""
  split("", column)
}

{ sub(/\r$/, "") }

# The cards of the first years, typed in.
kind == "crd" {
  gsub(/\t/, " ")
  if (/^\+/) {
    if (open) note = note " " trim(substr($0, 2))
    next
  }
  flush()
  if (/^\*/) next
  date = substr($0, 6, 6)
  clock = substr($0, 13, 4)
  if (date !~ /^[0-9][0-9][0-9][0-9][0-9][0-9]$/ || clock !~ /^[0-9][0-9][0-9][0-9]$/) next
  year = substr(date, 5, 2) + 0
  night = sprintf("%d-%s-%s", year + (year < 50 ? 2000 : 1900), substr(date, 3, 2), substr(date, 1, 2))
  time = substr(clock, 1, 2) ":" substr(clock, 3, 2)
  number = trim(substr($0, 1, 4))
  object = trim(substr($0, 18, 12))
  observer = trim(substr($0, 31, 3))
  magnitude = trim(substr($0, 35, 4))
  seconds = trim(substr($0, 40, 3)) * 60
  note = trim(substr($0, 44))
  open = 1
}

# Hanna's notebook.
kind == "log" {
  gsub(/\t/, " ")
  if (/\\$/) {
    held = held substr($0, 1, length($0) - 1)
    next
  }
  line = held $0
  held = ""
  flush()
  if (line ~ /^#/) {
    if (line ~ /^# *exposure +s *$/) unit = 1
    if (line ~ /^# *exposure +min *$/) unit = 60
    next
  }
  fields = split(line, field, ";")
  if (fields < 7 || field[2] !~ /^[0-9][0-9]\.[0-9][0-9]\.[0-9][0-9][0-9][0-9]$/ || field[3] !~ /^[0-9][0-9]:[0-9][0-9]$/) next
  night = substr(field[2], 7, 4) "-" substr(field[2], 4, 2) "-" substr(field[2], 1, 2)
  time = field[3]
  number = trim(field[1])
  object = trim(field[4])
  observer = trim(field[5])
  magnitude = trim(field[6])
  sub(/,/, ".", magnitude)
  seconds = trim(field[7]) * unit
  note = field[8]
  for (i = 9; i <= fields; i++) note = note ";" field[i]
  note = trim(note)
  open = 1
}

# What we write today.
kind == "tsv" {
  if (FNR == 1) {
    fields = split($0, field, "\t")
    for (i = 1; i <= fields; i++) column[field[i]] = i
    next
  }
  if (/^\t/) {
    gsub(/\t/, " ")
    if (open) note = note " " trim(substr($0, 2))
    next
  }
  flush()
  split($0, field, "\t")
  if (field[column["ut"]] !~ /^[0-9][0-9][0-9][0-9]-[0-9][0-9]-[0-9][0-9]T[0-9][0-9]:[0-9][0-9]$/) next
  night = substr(field[column["ut"]], 1, 10)
  time = substr(field[column["ut"]], 12, 5)
  if (time < "12:00") night = before(night)
  number = trim(field[column["id"]])
  object = trim(field[column["object"]])
  observer = trim(field[column["observer"]])
  magnitude = trim(field[column["mag"]])
  seconds = trim(field[column["exp"]]) + 0
  note = trim(field[column["note"]])
  open = 1
}

END { flush() }
