"""What turns the tables of an edition into those of the next one, without their rows."""

BUILD = [
    """
    CREATE TABLE edition (number integer NOT NULL);
    INSERT INTO edition VALUES (0);
    CREATE TABLE member (
        no integer PRIMARY KEY, name text NOT NULL, first_name text, born date, since date NOT NULL, phone text);
    CREATE TABLE reject (
        file text, line integer, head text NOT NULL, reason text NOT NULL, raw bytea NOT NULL,
        PRIMARY KEY (file, line));
    """,
    """
    CREATE TABLE title (
        sig text PRIMARY KEY, title text NOT NULL, author text, year integer,
        copies integer NOT NULL CHECK (copies >= 1));
    CREATE TABLE loan (
        id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY, member_no integer NOT NULL REFERENCES member,
        sig text NOT NULL REFERENCES title, out_on date NOT NULL, back_on date CHECK (back_on >= out_on),
        UNIQUE (member_no, sig, out_on));
    """,
    "ALTER TABLE member ADD CHECK (born <= since);",
    """
    CREATE TABLE contact (
        member_no integer NOT NULL REFERENCES member ON DELETE CASCADE,
        kind text NOT NULL CHECK (kind IN ('phone', 'note')), value text NOT NULL,
        PRIMARY KEY (member_no, kind, value));
    ALTER TABLE member DROP COLUMN phone;
    """,
    "CREATE UNIQUE INDEX ON loan (member_no, sig) WHERE back_on IS NULL;",
    "ALTER TABLE member ADD version text; ALTER TABLE title ADD version text;",
    "",
    """
    CREATE TABLE copy (
        sig text NOT NULL REFERENCES title, number integer NOT NULL CHECK (number >= 1), PRIMARY KEY (sig, number));
    ALTER TABLE title DROP COLUMN copies;
    ALTER TABLE loan DROP CONSTRAINT loan_sig_fkey;
    ALTER TABLE loan ADD copy_number integer NOT NULL;
    ALTER TABLE loan ADD FOREIGN KEY (sig, copy_number) REFERENCES copy;
    CREATE UNIQUE INDEX ON loan (sig, copy_number) WHERE back_on IS NULL;
    """,
    "ALTER TABLE loan ALTER member_no DROP NOT NULL; CREATE TABLE left_member (no integer PRIMARY KEY);",
]
