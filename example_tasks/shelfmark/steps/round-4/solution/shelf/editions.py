"""The editions of the database, and the steps from one to the next."""

from shelf import dumps

NOW = 4
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


def _loans(cursor) -> None:
    cursor.execute("""
        CREATE TABLE title (
            sig text PRIMARY KEY, title text NOT NULL, author text, year integer,
            copies integer NOT NULL CHECK (copies >= 1));
        CREATE TABLE loan (
            id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
            member_no integer NOT NULL REFERENCES member, sig text NOT NULL REFERENCES title,
            out_on date NOT NULL, back_on date CHECK (back_on >= out_on),
            UNIQUE (member_no, sig, out_on))""")


def _centuries(cursor) -> None:
    cursor.execute("""
        UPDATE member SET born =
            CASE WHEN extract(day FROM born - interval '100 years') = extract(day FROM born)
                 THEN born - interval '100 years' END
        WHERE born > since;
        ALTER TABLE member ADD CHECK (born <= since)""")


def _contacts(cursor) -> None:
    cursor.execute("""
        CREATE TABLE contact (
            member_no integer NOT NULL REFERENCES member ON DELETE CASCADE,
            kind text NOT NULL CHECK (kind IN ('phone', 'note')), value text NOT NULL,
            PRIMARY KEY (member_no, kind, value));
        SELECT no, phone FROM member WHERE phone IS NOT NULL""")
    for no, phone in cursor.fetchall():
        for contact in dumps.contacts(phone):
            cursor.execute("INSERT INTO contact VALUES (%s, %s, %s)", (no, *contact))
    cursor.execute("ALTER TABLE member DROP COLUMN phone")


_STEPS = [_members, _loans, _centuries, _contacts]
