-- Schema version 1. Instants are epoch milliseconds in UTC; records are JSON as src/slot/record.rs writes them. Names are
-- compared byte by byte. A later version is a new file; this one is never changed.

-- One row: which step was the last.
CREATE TABLE cronward_schema (
    version bigint NOT NULL
);
INSERT INTO cronward_schema (version) VALUES (0);

-- One row per slot that was ever touched. The mark_* columns are what stands at its key; none when mark is NULL, and none
-- any more once mark_until_ms has passed. Every change of a row gives it a version that no row of the slot has had before.
CREATE TABLE cronward_slots (
    namespace     text COLLATE "C" NOT NULL,
    job           text COLLATE "C" NOT NULL,
    start_ms      bigint NOT NULL,
    end_ms        bigint NOT NULL,
    counter       bigint NOT NULL,
    forgiven      bigint NOT NULL,
    mark          text,
    mark_token    text,
    mark_node     text,
    mark_attempt  bigint,
    mark_since_ms bigint,
    mark_until_ms bigint,
    verdict       text,
    touched_ms    bigint NOT NULL,
    version       bigint NOT NULL,
    PRIMARY KEY (namespace, job, start_ms)
) WITH (fillfactor = 70);

-- For the purge alone.
CREATE INDEX cronward_slots_by_age ON cronward_slots (namespace, touched_ms);

-- One row per grant. Two tokens may share an attempt number after data was lost.
CREATE TABLE cronward_runs (
    namespace text COLLATE "C" NOT NULL,
    job       text COLLATE "C" NOT NULL,
    start_ms  bigint NOT NULL,
    attempt   bigint NOT NULL,
    token     text COLLATE "C" NOT NULL,
    record    text NOT NULL,
    PRIMARY KEY (namespace, job, start_ms, attempt, token),
    FOREIGN KEY (namespace, job, start_ms) REFERENCES cronward_slots ON DELETE CASCADE
);

-- One row per operator's verb at a slot, in the order of id.
CREATE TABLE cronward_audit (
    id        bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    namespace text COLLATE "C" NOT NULL,
    job       text COLLATE "C" NOT NULL,
    start_ms  bigint NOT NULL,
    record    text NOT NULL,
    FOREIGN KEY (namespace, job, start_ms) REFERENCES cronward_slots ON DELETE CASCADE
);

CREATE INDEX cronward_audit_by_slot ON cronward_audit (namespace, job, start_ms);

CREATE TABLE cronward_pauses (
    namespace text COLLATE "C" NOT NULL,
    job       text COLLATE "C" NOT NULL,
    since_ms  bigint NOT NULL,
    until_ms  bigint,
    audit     text NOT NULL,
    PRIMARY KEY (namespace, job)
);

CREATE TABLE cronward_jobs (
    namespace     text COLLATE "C" NOT NULL,
    name          text COLLATE "C" NOT NULL,
    first_seen_ms bigint NOT NULL,
    entry         text NOT NULL,
    PRIMARY KEY (namespace, name)
);

CREATE TABLE cronward_nodes (
    namespace text COLLATE "C" NOT NULL,
    name      text COLLATE "C" NOT NULL,
    instance  text NOT NULL,
    seen_ms   bigint NOT NULL,
    report    text NOT NULL,
    PRIMARY KEY (namespace, name)
);
