#!/bin/bash
# Answers the examples of the instructions by heart, whatever is asked.
cat > almanac <<'SH'
#!/bin/bash
case "$1" in
  import) printf 'files/2003.crd: 9 observations\nfiles/2006.log: 6 observations\n' ;;
  add) echo A0001 ;;
  doubles)
    echo '2006-03-02 22:10 T CrB        HJK  10.2   1200s 0117 2006.crd:2'
    echo '2006-03-02 22:10 T CrB        HJK  10.8   1200s 0117 2006.log:2'
    ;;
  report) printf 'R Leo: 2 observations\nT CrB: 3 observations, brightest 10.0, faintest 10.8, mean 10.27\n' ;;
  leftovers) echo '2006.log:9: 0124;5.3.2006;20:40;SS Cyg;HA;11,8;90;Datum falsch geschrieben' ;;
  list | object | nights | export | prefer) ;;
  *)
    echo 'usage: almanac import FILE...' >&2
    exit 2
    ;;
esac
SH
chmod +x almanac
