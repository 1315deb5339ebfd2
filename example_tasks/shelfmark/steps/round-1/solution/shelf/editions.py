"""The editions of the database, and the steps from one to the next."""

NOW = 1
_LOCK = 5471


def edition_of(cursor) -> int:
    """Return the edition that the database is of; 0 where it has none."""
    cursor.execute("SELECT to_regclass('public.edition') IS NULL")
    if cursor.fetchone()[0]:
        return 0
    cursor.execute("SELECT number FROM public.edition")
    return cursor.fetchone()[0]


def migrate(connection) -> None:
    """Bring the database to this edition, in one transaction."""
    with connection, connection.cursor() as cursor:
        cursor.execute("SELECT pg_advisory_xact_lock(%s)", (_LOCK,))
        for number in range(edition_of(cursor) + 1, NOW + 1):
            _STEPS[number - 1](cursor)
            cursor.execute("UPDATE edition SET number = %s", (number,))


def _members(cursor) -> None:
    cursor.execute("""
        CREATE TABLE edition (number integer NOT NULL);
        INSERT INTO edition VALUES (0);
        CREATE TABLE member (
            no integer PRIMARY KEY, name text NOT NULL, first_name text, born date, since date NOT NULL, phone text);
        CREATE TABLE reject (
            file text, line integer, head text NOT NULL, reason text NOT NULL, raw bytea NOT NULL,
            PRIMARY KEY (file, line))""")


_STEPS = [_members]
