-- What is asked of MySQL and MariaDB: each statement by its name. The values of a statement that every dialect has stand in the same
-- order in all of them.

-- name: greet
-- For this connection, whatever the server's defaults are: nothing is cut in silence, and a lock is waited for at most so many
-- seconds.
SET SESSION sql_mode = 'STRICT_ALL_TABLES,NO_ENGINE_SUBSTITUTION', SESSION innodb_lock_wait_timeout = ?

-- name: server
-- MariaDB says so in its version. And the most bytes of one request, and how many columns of cronward's tables keep texts in another
-- character set than they were made with.
SELECT
    CAST(instr(version(), 'MariaDB') > 0 AS SIGNED) AS is_mariadb,
    CAST(@@max_allowed_packet AS SIGNED) AS packet,
    (
        SELECT count(*) FROM information_schema.columns
        WHERE table_schema = database() AND table_name = 'cronward_slots'
            AND character_set_name NOT IN ('utf8mb4', 'ascii')
    ) + (
        SELECT count(*) FROM information_schema.columns
        WHERE table_schema = database() AND table_name = 'cronward_outputs'
            AND character_set_name NOT IN ('utf8mb4', 'ascii')
    ) AS foreign_columns

-- name: limit_mariadb
-- A statement that takes longer than so many milliseconds is given up, and a transaction in which nothing happens for so many
-- seconds is rolled back: a client that was stopped keeps no lock.
SET SESSION max_statement_time = ? / 1000, SESSION idle_transaction_timeout = ?

-- name: limit_mysql
-- A SELECT that takes longer than so many milliseconds is given up; a client that was stopped loses its locks after a minute.
SET SESSION max_execution_time = ?, SESSION wait_timeout = 60

-- name: now
-- The server's clock in epoch milliseconds. UNIX_TIMESTAMP() would go through the session's time zone.
SELECT timestampdiff(MICROSECOND, '1970-01-01', utc_timestamp(3)) DIV 1000 AS now_ms

-- name: settings
-- What the server says of how it keeps what it answers.
SELECT 'version' AS name, CAST(@@global.version AS CHAR) AS setting
UNION ALL SELECT 'read_only', CAST(@@global.read_only AS CHAR)
UNION ALL SELECT 'innodb_flush_log_at_trx_commit', CAST(@@global.innodb_flush_log_at_trx_commit AS CHAR)
UNION ALL SELECT 'log_bin', CAST(@@global.log_bin AS CHAR)
UNION ALL SELECT 'sync_binlog', CAST(@@global.sync_binlog AS CHAR)
UNION ALL SELECT 'innodb_doublewrite', CAST(@@global.innodb_doublewrite AS CHAR)

-- name: begin
-- Each statement sees what was committed before it, as the connection is told when it is made.
START TRANSACTION

-- name: begin_snapshot
-- Everything as of one instant.
SET TRANSACTION ISOLATION LEVEL REPEATABLE READ;
START TRANSACTION WITH CONSISTENT SNAPSHOT, READ ONLY

-- name: schema_lock
-- One lock for all who make the tables of this database; its name has a limit that a database's name can exceed.
SELECT CAST(get_lock(concat('cronward.', md5(database())), ?) AS SIGNED) AS locked

-- name: schema_unlock
-- As `schema_lock`.
DO release_lock(concat('cronward.', md5(database())))

-- name: schema_there
-- Whether there is a table of versions.
SELECT count(*) FROM information_schema.tables WHERE table_schema = database() AND table_name = 'cronward_schema'

-- name: schema_version
-- The version of the tables.
SELECT max(version) FROM cronward_schema

-- name: slot_insert
-- Writes the row of a slot that had none, unless that was read too long ago: the last two values are when, and how many milliseconds
-- ago it may be. Fails when there is one by now.
INSERT INTO cronward_slots (
    namespace, job, slot, state, node, attempt, token, since_ms, until_ms, attempts, verdict, touched_ms, document, version
)
SELECT ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ? FROM dual
WHERE timestampdiff(MICROSECOND, '1970-01-01', utc_timestamp(3)) DIV 1000 - ? <= ?

-- name: slot_update
-- Writes the row of a slot if it still has the version that was read, unless that was too long ago, as in `slot_insert`.
UPDATE cronward_slots SET
    state      = ?,
    node       = ?,
    attempt    = ?,
    token      = ?,
    since_ms   = ?,
    until_ms   = ?,
    attempts   = ?,
    verdict    = ?,
    touched_ms = ?,
    document   = ?,
    version    = ?
WHERE namespace = ? AND job = ? AND slot = ? AND version = ?
    AND timestampdiff(MICROSECOND, '1970-01-01', utc_timestamp(3)) DIV 1000 - ? <= ?

-- name: slot_grant
-- The same if the job still has the turn that was read, too: with it the job has another one, and what it has come to lately, unless
-- that is NULL. Asked are the turn, that, what is set, the slot, the version and the turn that were read, and when. One statement:
-- nobody waits for a lock while a node thinks, but for the end of a run whose output is written with it. Both rows are there already.
UPDATE cronward_turns AS t
JOIN cronward_slots AS s ON s.namespace = t.namespace AND s.job = t.job
SET
    t.turn       = ?,
    t.latest     = COALESCE(?, t.latest),
    s.state      = ?,
    s.node       = ?,
    s.attempt    = ?,
    s.token      = ?,
    s.since_ms   = ?,
    s.until_ms   = ?,
    s.attempts   = ?,
    s.verdict    = ?,
    s.touched_ms = ?,
    s.document   = ?,
    s.version    = ?
WHERE t.namespace = ? AND t.job = ? AND s.slot = ? AND s.version = ? AND t.turn = ?
    AND timestampdiff(MICROSECOND, '1970-01-01', utc_timestamp(3)) DIV 1000 - ? <= ?

-- name: slot_begin
-- Makes the row of a slot that nothing has happened to, for `slot_grant` to change: namespace, job, slot, when, document, version.
INSERT IGNORE INTO cronward_slots (namespace, job, slot, state, attempts, touched_ms, document, version)
VALUES (?, ?, ?, 'none', 0, ?, ?, ?)

-- name: turn_begin
-- Makes the row of a job that had no turn, with a turn that nobody has been granted: for `slot_grant` to change.
INSERT IGNORE INTO cronward_turns (namespace, job, turn) VALUES (?, ?, 0)

-- name: outputs_forget
-- Removes the outputs of a slot whose records are older than the retention.
DELETE FROM cronward_outputs WHERE namespace = ? AND job = ? AND slot = ?

-- name: output_save
-- Writes the end of a run's output, in place of an earlier one of the same claim.
INSERT INTO cronward_outputs (namespace, job, slot, attempt, token, output)
VALUES (?, ?, ?, ?, ?, ?)
ON DUPLICATE KEY UPDATE output = VALUES(output)

-- name: output_remove
-- Removes a run's output, with the record that it belonged to.
DELETE FROM cronward_outputs WHERE namespace = ? AND job = ? AND slot = ? AND attempt = ? AND token = ?

-- name: slot_load
-- One row as of one instant, the server's clock: a slot's row, NULL where there is none, and the job's last pause; where it has to
-- run alone, or what the job has come to lately may change, the job's last turn, and that; and where it has to run alone, a row more,
-- with `other` 1, for each of the job's other slots that is leased. Asked are the slot, and whether either is so. The server would
-- take the primary key, and read every slot of the job.
WITH asked AS (
    SELECT
        timestampdiff(MICROSECOND, '1970-01-01', utc_timestamp(3)) DIV 1000 AS now_ms,
        CONVERT(? USING ascii) COLLATE ascii_bin AS namespace, CONVERT(? USING ascii) COLLATE ascii_bin AS job,
        CONVERT(? USING ascii) COLLATE ascii_bin AS slot, CAST(? AS SIGNED) AS alone,
        CAST(? AS SIGNED) AS lately
)
SELECT
    0 AS other, asked.now_ms, s.slot, s.version, s.state, s.node, s.attempt, s.token, s.since_ms, s.until_ms, s.attempts,
    s.document,
    t.turn, t.latest,
    p.since_ms AS pause_since_ms, p.until_ms AS pause_until_ms, p.audit AS pause_audit
FROM asked
LEFT JOIN cronward_slots AS s ON s.namespace = asked.namespace AND s.job = asked.job AND s.slot = asked.slot
LEFT JOIN cronward_pauses AS p ON p.namespace = asked.namespace AND p.job = asked.job
LEFT JOIN cronward_turns AS t ON (asked.alone OR asked.lately) AND t.namespace = asked.namespace AND t.job = asked.job
UNION ALL
SELECT
    1, asked.now_ms, o.slot, o.version, o.state, o.node, o.attempt, o.token, o.since_ms, o.until_ms, o.attempts,
    NULL, NULL, NULL, NULL, NULL, NULL
FROM asked
JOIN cronward_slots AS o FORCE INDEX (slots_by_state)
    ON o.namespace = asked.namespace AND o.job = asked.job AND o.state = 'running' AND o.slot <> asked.slot
    AND o.until_ms > asked.now_ms
WHERE asked.alone

-- name: slots_read
-- The rows of many slots. Asked are the namespace, and a JSON array of [job, slot].
SELECT STRAIGHT_JOIN
    t.job, t.slot, t.state, t.node, t.attempt, t.token, t.since_ms, t.until_ms, t.attempts, t.document
FROM (SELECT CONVERT(? USING ascii) COLLATE ascii_bin AS namespace, ? AS slots) AS asked
JOIN json_table(asked.slots, '$[*]' COLUMNS (
    job  VARCHAR(64) CHARACTER SET ascii PATH '$[0]',
    slot VARCHAR(32) CHARACTER SET ascii PATH '$[1]'
)) AS named
JOIN cronward_slots AS t
    ON t.namespace = asked.namespace AND t.job = named.job COLLATE ascii_bin AND t.slot = named.slot COLLATE ascii_bin

-- name: output_read
-- The end of one run's output.
SELECT output FROM cronward_outputs WHERE namespace = ? AND job = ? AND slot = ? AND attempt = ? AND token = ?

-- name: latest_read
-- What jobs have come to lately. Asked are the namespace, and a JSON array of names.
SELECT STRAIGHT_JOIN
    t.job, t.latest
FROM (SELECT CONVERT(? USING ascii) COLLATE ascii_bin AS namespace, ? AS jobs) AS asked
JOIN json_table(asked.jobs, '$[*]' COLUMNS (name VARCHAR(64) CHARACTER SET ascii PATH '$')) AS named
JOIN cronward_turns AS t ON t.namespace = asked.namespace AND t.job = named.name COLLATE ascii_bin

-- name: pause_get
-- A job's last pause; nobody else changes it until this transaction ends.
SELECT job, since_ms, until_ms, audit FROM cronward_pauses WHERE namespace = ? AND job = ? FOR UPDATE

-- name: pause_read
-- A job's last pause, to look at.
SELECT job, since_ms, until_ms, audit FROM cronward_pauses WHERE namespace = ? AND job = ?

-- name: pause_set
-- Sets a job's pause in place of an earlier one.
INSERT INTO cronward_pauses (namespace, job, since_ms, until_ms, audit)
VALUES (?, ?, ?, ?, ?)
ON DUPLICATE KEY UPDATE since_ms = VALUES(since_ms), until_ms = VALUES(until_ms), audit = VALUES(audit)

-- name: pauses
-- Every job's last pause, by name.
SELECT job, since_ms, until_ms, audit FROM cronward_pauses WHERE namespace = ? ORDER BY job

-- name: jobs_register
-- Makes the registry know jobs. The earliest first_seen_ms of a name is kept, and the whole of an entry of a file where the new one
-- is from elsewhere: only such a one says where it is from, and quotes inside of values are escaped. Asked are the namespace and a
-- JSON array of [name, entry, first_seen_ms]. A column that names no character set has the server's, which may lack most letters.
-- WHERE TRUE tells the parser that ON begins no join. Assignments are made in order, so the entry is the last.
INSERT INTO cronward_jobs (namespace, name, first_seen_ms, entry)
SELECT asked.namespace, job.name, job.first_seen_ms, job.entry
FROM (SELECT CONVERT(? USING ascii) AS namespace, ? AS jobs) AS asked
JOIN json_table(asked.jobs, '$[*]' COLUMNS (
    name          VARCHAR(64) CHARACTER SET ascii PATH '$[0]',
    entry         LONGTEXT CHARACTER SET utf8mb4 PATH '$[1]',
    first_seen_ms BIGINT PATH '$[2]'
)) AS job
WHERE TRUE
ON DUPLICATE KEY UPDATE first_seen_ms = IF(
    LOCATE('"origin":"', VALUES(entry)) > 0 AND LOCATE('"origin":"', cronward_jobs.entry) = 0,
    cronward_jobs.first_seen_ms,
    LEAST(cronward_jobs.first_seen_ms, VALUES(first_seen_ms))
), entry = IF(
    LOCATE('"origin":"', VALUES(entry)) > 0 AND LOCATE('"origin":"', cronward_jobs.entry) = 0,
    cronward_jobs.entry,
    VALUES(entry)
)

-- name: jobs
-- Every known job, by name.
SELECT name, first_seen_ms, entry FROM cronward_jobs WHERE namespace = ? ORDER BY name

-- name: nodes_forget
-- Removes nodes that were last seen at or before the instant.
DELETE FROM cronward_nodes WHERE namespace = ? AND seen_ms <= ?

-- name: node_known
-- Whether a node of this name has reported.
SELECT name FROM cronward_nodes WHERE namespace = ? AND name = ?

-- name: node_save
-- A node's last report; one per name.
INSERT INTO cronward_nodes (namespace, name, instance, seen_ms, report)
VALUES (?, ?, ?, ?, ?)
ON DUPLICATE KEY UPDATE instance = VALUES(instance), seen_ms = VALUES(seen_ms), report = VALUES(report)

-- name: nodes
-- Every node that was seen after the instant, by name.
SELECT name, seen_ms, report FROM cronward_nodes WHERE namespace = ? AND seen_ms > ? ORDER BY name

-- name: purge
-- Removes slots whose records were last changed at or before the first instant, except where a mark still stands at the
-- second; so many at most.
DELETE FROM cronward_slots
WHERE namespace = ? AND touched_ms <= ? AND (until_ms IS NULL OR until_ms <= ?)
ORDER BY touched_ms
LIMIT ?

-- name: turns_purge
-- Removes the turns from the first instant or before of jobs that have no slots; from the second or before where the job has come to
-- anything: with each change of that it had another turn. The next turn of such a job is never below the clock.
DELETE FROM cronward_turns
WHERE namespace = ? AND turn <= IF(latest IS NULL, ?, ?) AND NOT EXISTS (
    SELECT 1 FROM cronward_slots AS s WHERE s.namespace = cronward_turns.namespace AND s.job = cronward_turns.job
)

-- name: notes_save
-- Keeps pages; each takes the place of its earlier form. Asked are the namespace, and a JSON array of [job, slot, page, last,
-- kept from, record]. A column that names no character set has the server's, which may lack most letters. WHERE TRUE tells the
-- parser that ON begins no join.
INSERT INTO cronward_notes (namespace, job, slot, page, last_ms, kept_from_ms, record)
SELECT asked.namespace, n.job, n.slot, n.page, n.last_ms, n.kept_from_ms, n.record
FROM (SELECT CONVERT(? USING ascii) AS namespace, ? AS pages) AS asked
JOIN json_table(asked.pages, '$[*]' COLUMNS (
    job          VARCHAR(64) PATH '$[0]',
    slot         VARCHAR(32) PATH '$[1]',
    page         VARCHAR(64) PATH '$[2]',
    last_ms      BIGINT PATH '$[3]',
    kept_from_ms BIGINT PATH '$[4]',
    record       LONGTEXT CHARACTER SET utf8mb4 PATH '$[5]'
)) AS n
WHERE TRUE
ON DUPLICATE KEY UPDATE last_ms = VALUES(last_ms), kept_from_ms = VALUES(kept_from_ms), record = VALUES(record)

-- name: notes_there
-- The pages of many slots without what is in them, asked as in `slots_read`.
SELECT STRAIGHT_JOIN
    t.job, t.slot, t.page, t.last_ms
FROM (SELECT CONVERT(? USING ascii) COLLATE ascii_bin AS namespace, ? AS slots) AS asked
JOIN json_table(asked.slots, '$[*]' COLUMNS (
    job  VARCHAR(64) CHARACTER SET ascii PATH '$[0]',
    slot VARCHAR(32) CHARACTER SET ascii PATH '$[1]'
)) AS named
JOIN cronward_notes AS t
    ON t.namespace = asked.namespace AND t.job = named.job COLLATE ascii_bin AND t.slot = named.slot COLLATE ascii_bin

-- name: notes_read
-- A slot's pages, unless they were last changed at or before the instant.
SELECT record FROM cronward_notes WHERE namespace = ? AND job = ? AND slot = ? AND kept_from_ms > ?

-- name: notes_forget
-- Removes one page.
DELETE FROM cronward_notes WHERE namespace = ? AND job = ? AND slot = ? AND page = ?

-- name: notes_purge
-- Removes pages that were kept from the instant on or before; so many at most.
DELETE FROM cronward_notes WHERE namespace = ? AND kept_from_ms <= ? ORDER BY kept_from_ms LIMIT ?

-- name: locks_read
-- The queues of several locks as of one instant, the server's clock: a row for each, NULL where nobody has used it. Asked are the
-- namespace, and a JSON array of names.
SELECT STRAIGHT_JOIN
    asked.now_ms, l.lock, l.version, l.document
FROM (
    SELECT
        timestampdiff(MICROSECOND, '1970-01-01', utc_timestamp(3)) DIV 1000 AS now_ms,
        CONVERT(? USING ascii) COLLATE ascii_bin AS namespace, ? AS locks
) AS asked
JOIN json_table(asked.locks, '$[*]' COLUMNS (name VARCHAR(64) CHARACTER SET ascii PATH '$')) AS named
LEFT JOIN cronward_locks AS l ON l.namespace = asked.namespace AND l.lock = named.name COLLATE ascii_bin

-- name: locks_all
-- Every lock that is known, by name, as of one instant, the server's clock; a row of NULL where there is none.
SELECT asked.now_ms, l.lock, l.version, l.document
FROM (
    SELECT
        timestampdiff(MICROSECOND, '1970-01-01', utc_timestamp(3)) DIV 1000 AS now_ms,
        CONVERT(? USING ascii) COLLATE ascii_bin AS namespace
) AS asked
LEFT JOIN cronward_locks AS l ON l.namespace = asked.namespace
ORDER BY l.lock

-- name: locks_insert
-- Writes the queues of locks that nobody had used, all or none, unless they were read too long ago. Asked are the namespace, a JSON array
-- of [lock, until when it is needed, document, version], when they were read, and how many milliseconds ago that may be. Fails when there
-- is one of them by now.
INSERT INTO cronward_locks (namespace, `lock`, needed_ms, document, version)
SELECT asked.namespace, n.name, n.needed_ms, n.document, n.version
FROM (
    SELECT CONVERT(? USING ascii) AS namespace, ? AS locks, CAST(? AS SIGNED) AS read_ms, CAST(? AS SIGNED) AS limit_ms
) AS asked
JOIN json_table(asked.locks, '$[*]' COLUMNS (
    name      VARCHAR(64) CHARACTER SET ascii PATH '$[0]',
    needed_ms BIGINT PATH '$[1]',
    document  LONGTEXT CHARACTER SET utf8mb4 PATH '$[2]',
    version   BIGINT PATH '$[3]'
)) AS n
WHERE timestampdiff(MICROSECOND, '1970-01-01', utc_timestamp(3)) DIV 1000 - asked.read_ms <= asked.limit_ms

-- name: locks_update
-- Writes those queues that still have the version that was read, asked as in `locks_insert` with that version behind each. Rows are
-- looked for, and locked, in the order of the array.
UPDATE (
    SELECT
        CONVERT(? USING ascii) COLLATE ascii_bin AS namespace, ? AS locks, CAST(? AS SIGNED) AS read_ms,
        CAST(? AS SIGNED) AS limit_ms
) AS asked
STRAIGHT_JOIN json_table(asked.locks, '$[*]' COLUMNS (
    name         VARCHAR(64) CHARACTER SET ascii PATH '$[0]',
    needed_ms    BIGINT PATH '$[1]',
    document     LONGTEXT CHARACTER SET utf8mb4 PATH '$[2]',
    version      BIGINT PATH '$[3]',
    read_version BIGINT PATH '$[4]'
)) AS n
STRAIGHT_JOIN cronward_locks AS l
    ON l.namespace = asked.namespace AND l.lock = n.name COLLATE ascii_bin AND l.version = n.read_version
SET l.needed_ms = n.needed_ms, l.document = n.document, l.version = n.version
WHERE timestampdiff(MICROSECOND, '1970-01-01', utc_timestamp(3)) DIV 1000 - asked.read_ms <= asked.limit_ms

-- name: locks_purge
-- Removes locks of which nothing was needed after the instant; so many at most.
DELETE FROM cronward_locks WHERE namespace = ? AND needed_ms <= ? ORDER BY needed_ms LIMIT ?

-- name: trial_jobs
-- Removes a job that was only tried from the registry.
DELETE FROM cronward_jobs WHERE namespace = ? AND name = ?

-- name: trial_nodes
-- Removes a node that was only tried.
DELETE FROM cronward_nodes WHERE namespace = ? AND name = ?

-- name: trial_pauses
-- Removes the pause of a job that was only tried.
DELETE FROM cronward_pauses WHERE namespace = ? AND job = ?

-- name: trial_slots
-- Removes every slot of a job that was only tried.
DELETE FROM cronward_slots WHERE namespace = ? AND job = ?

-- name: trial_notes
-- Removes what was noted on a job that was only tried.
DELETE FROM cronward_notes WHERE namespace = ? AND job = ?

-- name: trial_locks
-- Removes a lock that was only tried.
DELETE FROM cronward_locks WHERE namespace = ? AND `lock` = ?

-- name: trial_latest
-- Removes the turn of a job that was only tried, and what it has come to.
DELETE FROM cronward_turns WHERE namespace = ? AND job = ?

-- name: messages_read
-- What is known of several topics' messages, as of one instant, the server's clock: a row for each, NULL where nothing was told of it.
-- Asked are the namespace, and a JSON array of names.
SELECT STRAIGHT_JOIN
    asked.now_ms, m.topic, m.version, m.document
FROM (
    SELECT
        timestampdiff(MICROSECOND, '1970-01-01', utc_timestamp(3)) DIV 1000 AS now_ms,
        CONVERT(? USING ascii) COLLATE ascii_bin AS namespace, ? AS topics
) AS asked
JOIN json_table(asked.topics, '$[*]' COLUMNS (name VARCHAR(64) CHARACTER SET ascii PATH '$')) AS named
LEFT JOIN cronward_messages AS m ON m.namespace = asked.namespace AND m.topic = named.name COLLATE ascii_bin

-- name: messages_insert
-- Writes what is known of a topic that had no row, unless there is one by now. What IGNORE would let pass besides, a value that does not fit,
-- is not sent: topics are shorter than their column.
INSERT IGNORE INTO cronward_messages (namespace, topic, needed_ms, document, version)
VALUES (?, ?, ?, ?, ?)

-- name: messages_update
-- Writes what is known of a topic whose row still has the version that was read.
UPDATE cronward_messages SET needed_ms = ?, document = ?, version = ?
WHERE namespace = ? AND topic = ? AND version = ?

-- name: messages_purge
-- Removes topics of which nothing was needed after the instant; so many at most.
DELETE FROM cronward_messages WHERE namespace = ? AND needed_ms <= ? ORDER BY needed_ms LIMIT ?

-- name: trial_messages
-- Removes messages about a job that was only tried.
DELETE FROM cronward_messages WHERE namespace = ? AND topic = ?
