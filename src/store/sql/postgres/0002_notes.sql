-- Schema version 2: what nodes noted on slots, for people. One row per page. No rule reads it.
CREATE TABLE cronward_notes (
    namespace    text COLLATE "C" NOT NULL,
    job          text COLLATE "C" NOT NULL,
    start_ms     bigint NOT NULL,
    page         text COLLATE "C" NOT NULL,
    last_ms      bigint NOT NULL,
    kept_from_ms bigint NOT NULL,
    record       text NOT NULL,
    PRIMARY KEY (namespace, job, start_ms, page)
) WITH (fillfactor = 70);

-- For the purge alone.
CREATE INDEX cronward_notes_by_age ON cronward_notes (namespace, kept_from_ms);
