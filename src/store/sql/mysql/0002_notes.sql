-- Schema version 2: what nodes noted on slots, for people. One row per page. No rule reads it. It can be run again.
CREATE TABLE IF NOT EXISTS cronward_notes (
    namespace    VARCHAR(64) CHARACTER SET ascii COLLATE ascii_bin NOT NULL,
    job          VARCHAR(64) CHARACTER SET ascii COLLATE ascii_bin NOT NULL,
    start_ms     BIGINT NOT NULL,
    page         VARCHAR(64) CHARACTER SET ascii COLLATE ascii_bin NOT NULL,
    last_ms      BIGINT NOT NULL,
    kept_from_ms BIGINT NOT NULL,
    record       LONGTEXT CHARACTER SET utf8mb4 NOT NULL,
    PRIMARY KEY (namespace, job, start_ms, page),
    -- For the purge alone.
    KEY notes_by_age (namespace, kept_from_ms)
) ENGINE = InnoDB
