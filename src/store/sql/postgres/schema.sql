-- The tables, version 8. Instants are epoch milliseconds in UTC; what is JSON is as src/slot and src/store/state.rs write it. Names
-- are compared byte by byte.

-- One row.
CREATE TABLE cronward_schema (
    version bigint NOT NULL
);
INSERT INTO cronward_schema (version) VALUES (8);

-- One row per slot that was ever touched. What stands at its key are state ('running', 'backoff', 'done' or 'none'), node, attempt,
-- token, since_ms and until_ms; it counts only until then. attempts is the counter. All else that is recorded is in the document,
-- of which verdict and touched_ms are copies: the one for people, the other for the purge. Each change gives the row a version that
-- no row of the slot has had before.
CREATE TABLE cronward_slots (
    namespace  text COLLATE "C" NOT NULL,
    job        text COLLATE "C" NOT NULL,
    slot       text COLLATE "C" NOT NULL,
    state      text NOT NULL,
    node       text,
    attempt    bigint,
    token      text,
    since_ms   bigint,
    until_ms   bigint,
    attempts   bigint NOT NULL,
    verdict    text,
    touched_ms bigint NOT NULL,
    document   text NOT NULL,
    version    bigint NOT NULL,
    PRIMARY KEY (namespace, job, slot)
) WITH (fillfactor = 70);

-- What runs of a job is found without looking at its other slots. Without the end of the lease, so that a renewal changes no index.
CREATE INDEX cronward_slots_running ON cronward_slots (namespace, job) WHERE state = 'running';

-- For the purge alone.
CREATE INDEX cronward_slots_by_age ON cronward_slots (namespace, touched_ms);

-- One row per job. Of two slots that are claimed at once, each of which must run alone, one is granted: such a grant gives the job
-- another turn, and is written only while the job has the turn that was read. So does a step that changes latest: what the job has come
-- to lately, in JSON; NULL until it has come to anything. Turns are never below the clock, so they tell when that was, too.
CREATE TABLE cronward_turns (
    namespace text COLLATE "C" NOT NULL,
    job       text COLLATE "C" NOT NULL,
    turn      bigint NOT NULL,
    latest    text,
    PRIMARY KEY (namespace, job)
) WITH (fillfactor = 70);

-- The end of each run's output. No rule asks for it. Two tokens may share an attempt number after data was lost.
CREATE TABLE cronward_outputs (
    namespace text COLLATE "C" NOT NULL,
    job       text COLLATE "C" NOT NULL,
    slot      text COLLATE "C" NOT NULL,
    attempt   bigint NOT NULL,
    token     text COLLATE "C" NOT NULL,
    output    text NOT NULL,
    PRIMARY KEY (namespace, job, slot, attempt, token),
    FOREIGN KEY (namespace, job, slot) REFERENCES cronward_slots ON DELETE CASCADE
);

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

-- What nodes noted on slots, for people. One row per page. No rule reads it.
CREATE TABLE cronward_notes (
    namespace    text COLLATE "C" NOT NULL,
    job          text COLLATE "C" NOT NULL,
    slot         text COLLATE "C" NOT NULL,
    page         text COLLATE "C" NOT NULL,
    last_ms      bigint NOT NULL,
    kept_from_ms bigint NOT NULL,
    record       text NOT NULL,
    PRIMARY KEY (namespace, job, slot, page)
) WITH (fillfactor = 70);

-- For the purge alone.
CREATE INDEX cronward_notes_by_age ON cronward_notes (namespace, kept_from_ms);

-- One row per lock that somebody used: its queue, in JSON, as src/store/rules/lock/queue.rs writes it, and until when something of it
-- is needed. Each change gives the row a version that no row of the lock has had before.
CREATE TABLE cronward_locks (
    namespace text COLLATE "C" NOT NULL,
    lock      text COLLATE "C" NOT NULL,
    needed_ms bigint NOT NULL,
    document  text NOT NULL,
    version   bigint NOT NULL,
    PRIMARY KEY (namespace, lock)
) WITH (fillfactor = 70);

-- For the purge alone.
CREATE INDEX cronward_locks_by_age ON cronward_locks (namespace, needed_ms);

-- One row per topic that something was told of: the messages about it, in JSON, as src/store/rules/message.rs writes it, and until when
-- something of it is needed. Each change gives the row a version that no row of the topic has had before.
CREATE TABLE cronward_messages (
    namespace text COLLATE "C" NOT NULL,
    topic     text COLLATE "C" NOT NULL,
    needed_ms bigint NOT NULL,
    document  text NOT NULL,
    version   bigint NOT NULL,
    PRIMARY KEY (namespace, topic)
) WITH (fillfactor = 70);

-- For the purge alone.
CREATE INDEX cronward_messages_by_age ON cronward_messages (namespace, needed_ms);
