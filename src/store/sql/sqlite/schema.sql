-- The tables, version 8. Instants are epoch milliseconds in UTC; what is JSON is as src/slot and src/store/state.rs write it.

-- One row per slot that was ever touched. What stands at its key are state ('running', 'backoff', 'done' or 'none'), node, attempt,
-- token, since_ms and until_ms; it counts only until then. attempts is the counter. All else that is recorded is in the document,
-- of which verdict and touched_ms are copies: the one for people, the other for the purge. Each change makes the version larger.
CREATE TABLE slots (
    namespace  TEXT    NOT NULL,
    job        TEXT    NOT NULL,
    slot       TEXT    NOT NULL,
    state      TEXT    NOT NULL,
    node       TEXT,
    attempt    INTEGER,
    token      TEXT,
    since_ms   INTEGER,
    until_ms   INTEGER,
    attempts   INTEGER NOT NULL,
    verdict    TEXT,
    touched_ms INTEGER NOT NULL,
    document   TEXT    NOT NULL,
    version    INTEGER NOT NULL,
    PRIMARY KEY (namespace, job, slot)
) STRICT, WITHOUT ROWID;

-- What runs of a job is found without looking at its other slots.
CREATE INDEX slots_running ON slots (namespace, job) WHERE state = 'running';

-- For the purge alone.
CREATE INDEX slots_by_age ON slots (namespace, touched_ms);

-- One row per job: what it has come to lately, in JSON, and since when it is that.
CREATE TABLE latest (
    namespace  TEXT    NOT NULL,
    job        TEXT    NOT NULL,
    changed_ms INTEGER NOT NULL,
    latest     TEXT    NOT NULL,
    PRIMARY KEY (namespace, job)
) STRICT, WITHOUT ROWID;

-- The end of each run's output. No rule asks for it. Two tokens may share an attempt number after the file was lost and made anew.
CREATE TABLE outputs (
    namespace TEXT    NOT NULL,
    job       TEXT    NOT NULL,
    slot      TEXT    NOT NULL,
    attempt   INTEGER NOT NULL,
    token     TEXT    NOT NULL,
    output    TEXT    NOT NULL,
    PRIMARY KEY (namespace, job, slot, attempt, token),
    FOREIGN KEY (namespace, job, slot) REFERENCES slots ON DELETE CASCADE
) STRICT;

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

-- What nodes noted on slots, for people. One row per page. No rule reads it.
CREATE TABLE notes (
    namespace    TEXT    NOT NULL,
    job          TEXT    NOT NULL,
    slot         TEXT    NOT NULL,
    page         TEXT    NOT NULL,
    last_ms      INTEGER NOT NULL,
    kept_from_ms INTEGER NOT NULL,
    record       TEXT    NOT NULL,
    PRIMARY KEY (namespace, job, slot, page)
) STRICT, WITHOUT ROWID;

-- For the purge alone.
CREATE INDEX notes_by_age ON notes (namespace, kept_from_ms);

-- One row per lock that somebody used: its queue, in JSON, as src/store/rules/lock/queue.rs writes it, and until when something of it
-- is needed. Each change makes the version larger.
CREATE TABLE locks (
    namespace TEXT    NOT NULL,
    lock      TEXT    NOT NULL,
    needed_ms INTEGER NOT NULL,
    document  TEXT    NOT NULL,
    version   INTEGER NOT NULL,
    PRIMARY KEY (namespace, lock)
) STRICT, WITHOUT ROWID;

-- For the purge alone.
CREATE INDEX locks_by_age ON locks (namespace, needed_ms);

-- One row per topic that something was told of: the messages about it, in JSON, as src/store/rules/message.rs writes it, and until when
-- something of it is needed. Each change makes the version larger.
CREATE TABLE messages (
    namespace TEXT    NOT NULL,
    topic     TEXT    NOT NULL,
    needed_ms INTEGER NOT NULL,
    document  TEXT    NOT NULL,
    version   INTEGER NOT NULL,
    PRIMARY KEY (namespace, topic)
) STRICT, WITHOUT ROWID;

-- For the purge alone.
CREATE INDEX messages_by_age ON messages (namespace, needed_ms);

-- "CRWD": tells this file from another program's.
PRAGMA application_id = 1129469764;
PRAGMA user_version = 8;
