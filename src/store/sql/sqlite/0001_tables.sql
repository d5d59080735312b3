-- Schema version 1. Instants are epoch milliseconds in UTC; records are JSON as src/slot/record.rs writes them.
-- A later version is a new file; this one is never changed.

-- One row per slot that was ever touched. The mark_* columns are what stands at its key; none when mark is NULL,
-- and none any more once mark_until_ms has passed.
CREATE TABLE slots (
    namespace     TEXT    NOT NULL,
    job           TEXT    NOT NULL,
    start_ms      INTEGER NOT NULL,
    end_ms        INTEGER NOT NULL,
    counter       INTEGER NOT NULL,
    forgiven      INTEGER NOT NULL,
    mark          TEXT,
    mark_token    TEXT,
    mark_node     TEXT,
    mark_attempt  INTEGER,
    mark_since_ms INTEGER,
    mark_until_ms INTEGER,
    verdict       TEXT,
    touched_ms    INTEGER NOT NULL,
    PRIMARY KEY (namespace, job, start_ms)
) STRICT, WITHOUT ROWID;

-- For the purge alone.
CREATE INDEX slots_by_age ON slots (namespace, touched_ms);

-- One row per grant. Two tokens may share an attempt number after the file was lost and made anew.
CREATE TABLE runs (
    namespace TEXT    NOT NULL,
    job       TEXT    NOT NULL,
    start_ms  INTEGER NOT NULL,
    attempt   INTEGER NOT NULL,
    token     TEXT    NOT NULL,
    record    TEXT    NOT NULL,
    PRIMARY KEY (namespace, job, start_ms, attempt, token),
    FOREIGN KEY (namespace, job, start_ms) REFERENCES slots ON DELETE CASCADE
) STRICT;

-- One row per operator's verb at a slot, in the order of id.
CREATE TABLE audit (
    id        INTEGER PRIMARY KEY,
    namespace TEXT    NOT NULL,
    job       TEXT    NOT NULL,
    start_ms  INTEGER NOT NULL,
    record    TEXT    NOT NULL,
    FOREIGN KEY (namespace, job, start_ms) REFERENCES slots ON DELETE CASCADE
) STRICT;

CREATE INDEX audit_by_slot ON audit (namespace, job, start_ms);

CREATE TABLE pauses (
    namespace TEXT    NOT NULL,
    job       TEXT    NOT NULL,
    since_ms  INTEGER NOT NULL,
    until_ms  INTEGER,
    audit     TEXT    NOT NULL,
    PRIMARY KEY (namespace, job)
) STRICT, WITHOUT ROWID;

CREATE TABLE jobs (
    namespace     TEXT    NOT NULL,
    name          TEXT    NOT NULL,
    first_seen_ms INTEGER NOT NULL,
    entry         TEXT    NOT NULL,
    PRIMARY KEY (namespace, name)
) STRICT, WITHOUT ROWID;

CREATE TABLE nodes (
    namespace TEXT    NOT NULL,
    name      TEXT    NOT NULL,
    instance  TEXT    NOT NULL,
    seen_ms   INTEGER NOT NULL,
    report    TEXT    NOT NULL,
    PRIMARY KEY (namespace, name)
) STRICT, WITHOUT ROWID;

-- "CRWD": tells this file from another program's.
PRAGMA application_id = 1129469764;
PRAGMA user_version = 1;
