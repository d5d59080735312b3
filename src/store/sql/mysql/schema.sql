-- The tables, version 8. Instants are epoch milliseconds in UTC; what is JSON is as src/slot and src/store/state.rs write it. Names
-- are compared byte by byte. Each statement can be run again, because the server commits after each; the version is written last.

-- One row.
CREATE TABLE IF NOT EXISTS cronward_schema (
    one     TINYINT NOT NULL DEFAULT 1 PRIMARY KEY,
    version BIGINT  NOT NULL
) ENGINE = InnoDB;

-- One row per slot that was ever touched. What stands at its key are state ('running', 'backoff', 'done' or 'none'), node, attempt,
-- token, since_ms and until_ms; it counts only until then. attempts is the counter. All else that is recorded is in the document,
-- of which verdict and touched_ms are copies: the one for people, the other for the purge. Each change gives the row a version that
-- no row of the slot has had before.
CREATE TABLE IF NOT EXISTS cronward_slots (
    namespace  VARCHAR(64) CHARACTER SET ascii COLLATE ascii_bin NOT NULL,
    job        VARCHAR(64) CHARACTER SET ascii COLLATE ascii_bin NOT NULL,
    slot       VARCHAR(32) CHARACTER SET ascii COLLATE ascii_bin NOT NULL,
    state      VARCHAR(32) CHARACTER SET ascii COLLATE ascii_bin NOT NULL,
    node       VARCHAR(64) CHARACTER SET ascii COLLATE ascii_bin,
    attempt    BIGINT,
    token      VARCHAR(64) CHARACTER SET ascii COLLATE ascii_bin,
    since_ms   BIGINT,
    until_ms   BIGINT,
    attempts   BIGINT NOT NULL,
    verdict    VARCHAR(32) CHARACTER SET ascii COLLATE ascii_bin,
    touched_ms BIGINT NOT NULL,
    document   LONGTEXT CHARACTER SET utf8mb4 NOT NULL,
    version    BIGINT NOT NULL,
    PRIMARY KEY (namespace, job, slot),
    -- What runs of a job is found without looking at its other slots.
    KEY slots_by_state (namespace, job, state),
    -- For the purge alone.
    KEY slots_by_age (namespace, touched_ms)
) ENGINE = InnoDB;

-- One row per job. Of two slots that are claimed at once, each of which must run alone, one is granted: such a grant gives the job
-- another turn, and is written only while the job has the turn that was read. So does a step that changes latest: what the job has come
-- to lately, in JSON; NULL until it has come to anything. Turns are never below the clock, so they tell when that was, too.
CREATE TABLE IF NOT EXISTS cronward_turns (
    namespace VARCHAR(64) CHARACTER SET ascii COLLATE ascii_bin NOT NULL,
    job       VARCHAR(64) CHARACTER SET ascii COLLATE ascii_bin NOT NULL,
    turn      BIGINT NOT NULL,
    latest    TEXT CHARACTER SET utf8mb4,
    PRIMARY KEY (namespace, job)
) ENGINE = InnoDB;

-- The end of the output of each run. No rule asks for it. Two tokens may share an attempt number after data was lost.
CREATE TABLE IF NOT EXISTS cronward_outputs (
    namespace VARCHAR(64) CHARACTER SET ascii COLLATE ascii_bin NOT NULL,
    job       VARCHAR(64) CHARACTER SET ascii COLLATE ascii_bin NOT NULL,
    slot      VARCHAR(32) CHARACTER SET ascii COLLATE ascii_bin NOT NULL,
    attempt   BIGINT NOT NULL,
    token     VARCHAR(64) CHARACTER SET ascii COLLATE ascii_bin NOT NULL,
    output    LONGTEXT CHARACTER SET utf8mb4 NOT NULL,
    PRIMARY KEY (namespace, job, slot, attempt, token),
    CONSTRAINT cronward_outputs_of_slot FOREIGN KEY (namespace, job, slot)
        REFERENCES cronward_slots (namespace, job, slot) ON DELETE CASCADE
) ENGINE = InnoDB;

CREATE TABLE IF NOT EXISTS cronward_pauses (
    namespace VARCHAR(64) CHARACTER SET ascii COLLATE ascii_bin NOT NULL,
    job       VARCHAR(64) CHARACTER SET ascii COLLATE ascii_bin NOT NULL,
    since_ms  BIGINT NOT NULL,
    until_ms  BIGINT,
    audit     LONGTEXT CHARACTER SET utf8mb4 NOT NULL,
    PRIMARY KEY (namespace, job)
) ENGINE = InnoDB;

CREATE TABLE IF NOT EXISTS cronward_jobs (
    namespace     VARCHAR(64) CHARACTER SET ascii COLLATE ascii_bin NOT NULL,
    name          VARCHAR(64) CHARACTER SET ascii COLLATE ascii_bin NOT NULL,
    first_seen_ms BIGINT NOT NULL,
    entry         LONGTEXT CHARACTER SET utf8mb4 NOT NULL,
    PRIMARY KEY (namespace, name)
) ENGINE = InnoDB;

CREATE TABLE IF NOT EXISTS cronward_nodes (
    namespace VARCHAR(64) CHARACTER SET ascii COLLATE ascii_bin NOT NULL,
    name      VARCHAR(64) CHARACTER SET ascii COLLATE ascii_bin NOT NULL,
    instance  TEXT CHARACTER SET utf8mb4 NOT NULL,
    seen_ms   BIGINT NOT NULL,
    report    LONGTEXT CHARACTER SET utf8mb4 NOT NULL,
    PRIMARY KEY (namespace, name)
) ENGINE = InnoDB;

-- What nodes noted on slots, for people. One row per page. No rule reads it.
CREATE TABLE IF NOT EXISTS cronward_notes (
    namespace    VARCHAR(64) CHARACTER SET ascii COLLATE ascii_bin NOT NULL,
    job          VARCHAR(64) CHARACTER SET ascii COLLATE ascii_bin NOT NULL,
    slot         VARCHAR(32) CHARACTER SET ascii COLLATE ascii_bin NOT NULL,
    page         VARCHAR(64) CHARACTER SET ascii COLLATE ascii_bin NOT NULL,
    last_ms      BIGINT NOT NULL,
    kept_from_ms BIGINT NOT NULL,
    record       LONGTEXT CHARACTER SET utf8mb4 NOT NULL,
    PRIMARY KEY (namespace, job, slot, page),
    -- For the purge alone.
    KEY notes_by_age (namespace, kept_from_ms)
) ENGINE = InnoDB;

-- One row per lock that somebody used: its queue, in JSON, as src/store/rules/lock/queue.rs writes it, and until when something of it
-- is needed. Each change gives the row a version that no row of the lock has had before.
CREATE TABLE IF NOT EXISTS cronward_locks (
    namespace VARCHAR(64) CHARACTER SET ascii COLLATE ascii_bin NOT NULL,
    `lock`    VARCHAR(64) CHARACTER SET ascii COLLATE ascii_bin NOT NULL,
    needed_ms BIGINT NOT NULL,
    document  LONGTEXT CHARACTER SET utf8mb4 NOT NULL,
    version   BIGINT NOT NULL,
    PRIMARY KEY (namespace, `lock`),
    -- For the purge alone.
    KEY locks_by_age (namespace, needed_ms)
) ENGINE = InnoDB;

-- One row per topic that something was told of: the messages about it, in JSON, as src/store/rules/message.rs writes it, and until when
-- something of it is needed. Each change gives the row a version that no row of the topic has had before.
CREATE TABLE IF NOT EXISTS cronward_messages (
    namespace VARCHAR(64) CHARACTER SET ascii COLLATE ascii_bin NOT NULL,
    topic     VARCHAR(64) CHARACTER SET ascii COLLATE ascii_bin NOT NULL,
    needed_ms BIGINT NOT NULL,
    document  LONGTEXT CHARACTER SET utf8mb4 NOT NULL,
    version   BIGINT NOT NULL,
    PRIMARY KEY (namespace, topic),
    -- For the purge alone.
    KEY messages_by_age (namespace, needed_ms)
) ENGINE = InnoDB;

REPLACE INTO cronward_schema (one, version) VALUES (1, 8)
