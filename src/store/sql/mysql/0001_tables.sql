-- Schema version 1. Instants are epoch milliseconds in UTC; records are JSON as src/slot/record.rs writes them. Names are
-- compared byte by byte. Each statement can be run again. A later version is a new file; this one is never changed.

-- One row: which step was the last.
CREATE TABLE IF NOT EXISTS cronward_schema (
    one     TINYINT NOT NULL DEFAULT 1 PRIMARY KEY,
    version BIGINT  NOT NULL
) ENGINE = InnoDB;

INSERT IGNORE INTO cronward_schema (one, version) VALUES (1, 0);

-- One row per slot that was ever touched. The mark_* columns are what stands at its key; none when mark is NULL, and none
-- any more once mark_until_ms has passed. Every change of a row gives it a version that no row of the slot has had before.
CREATE TABLE IF NOT EXISTS cronward_slots (
    namespace     VARCHAR(64) CHARACTER SET ascii COLLATE ascii_bin NOT NULL,
    job           VARCHAR(64) CHARACTER SET ascii COLLATE ascii_bin NOT NULL,
    start_ms      BIGINT NOT NULL,
    end_ms        BIGINT NOT NULL,
    counter       BIGINT NOT NULL,
    forgiven      BIGINT NOT NULL,
    mark          VARCHAR(32) CHARACTER SET ascii COLLATE ascii_bin,
    mark_token    VARCHAR(64) CHARACTER SET ascii COLLATE ascii_bin,
    mark_node     VARCHAR(64) CHARACTER SET ascii COLLATE ascii_bin,
    mark_attempt  BIGINT,
    mark_since_ms BIGINT,
    mark_until_ms BIGINT,
    verdict       TEXT CHARACTER SET utf8mb4,
    touched_ms    BIGINT NOT NULL,
    version       BIGINT NOT NULL,
    PRIMARY KEY (namespace, job, start_ms),
    -- For the purge alone.
    KEY slots_by_age (namespace, touched_ms)
) ENGINE = InnoDB;

-- One row per grant. Two tokens may share an attempt number after data was lost.
CREATE TABLE IF NOT EXISTS cronward_runs (
    namespace VARCHAR(64) CHARACTER SET ascii COLLATE ascii_bin NOT NULL,
    job       VARCHAR(64) CHARACTER SET ascii COLLATE ascii_bin NOT NULL,
    start_ms  BIGINT NOT NULL,
    attempt   BIGINT NOT NULL,
    token     VARCHAR(64) CHARACTER SET ascii COLLATE ascii_bin NOT NULL,
    record    LONGTEXT CHARACTER SET utf8mb4 NOT NULL,
    PRIMARY KEY (namespace, job, start_ms, attempt, token),
    CONSTRAINT cronward_runs_of_slot FOREIGN KEY (namespace, job, start_ms)
        REFERENCES cronward_slots (namespace, job, start_ms) ON DELETE CASCADE
) ENGINE = InnoDB;

-- One row per operator's verb at a slot, in the order of id.
CREATE TABLE IF NOT EXISTS cronward_audit (
    id        BIGINT NOT NULL AUTO_INCREMENT PRIMARY KEY,
    namespace VARCHAR(64) CHARACTER SET ascii COLLATE ascii_bin NOT NULL,
    job       VARCHAR(64) CHARACTER SET ascii COLLATE ascii_bin NOT NULL,
    start_ms  BIGINT NOT NULL,
    record    LONGTEXT CHARACTER SET utf8mb4 NOT NULL,
    KEY audit_by_slot (namespace, job, start_ms),
    CONSTRAINT cronward_audit_of_slot FOREIGN KEY (namespace, job, start_ms)
        REFERENCES cronward_slots (namespace, job, start_ms) ON DELETE CASCADE
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
) ENGINE = InnoDB
