"""Steps of a case that are no calls of the program, as words, and what they show."""

QUERY = """\
import sqlite3, sys
database = sqlite3.connect("file:almanac.db?mode=ro", uri=True)
print(ascii(database.execute(sys.argv[1]).fetchall()))
"""
HERE = ["ls", "-A"]


def take_over(database="almanac.db"):
    """Begin with a copy of the user's own database, on which the versions of the rounds before have worked."""
    return ["cp", f"/app/live/{database}", "almanac.db"]


def select(query):
    """Have somebody else read from the database; `ast.literal_eval` makes rows of what is printed."""
    return ["python3", "-IS", "-c", QUERY, query]


def show(names, directory="out"):
    """Print the files of these names in a directory, as `shown` has it."""
    return ["head", "-v", "-c", "-0", *(f"{directory}/{name}" for name in names)]


def shown(files, directory="out"):
    """Return what `show` prints for files (contents by name)."""
    return "\n".join(
        f"==> {directory}/{name} <==\n{content.decode('utf-8', 'surrogateescape')}" for name, content in files.items()
    )
