-- Schema version 2: what nodes noted on slots, for people. One row per page. No rule reads it.
CREATE TABLE notes (
    namespace    TEXT    NOT NULL,
    job          TEXT    NOT NULL,
    start_ms     INTEGER NOT NULL,
    page         TEXT    NOT NULL,
    last_ms      INTEGER NOT NULL,
    kept_from_ms INTEGER NOT NULL,
    record       TEXT    NOT NULL,
    PRIMARY KEY (namespace, job, start_ms, page)
) STRICT, WITHOUT ROWID;

-- For the purge alone.
CREATE INDEX notes_by_age ON notes (namespace, kept_from_ms);

PRAGMA user_version = 2;
