-- What is asked of SQLite: each statement by its name. What a number stands for in a statement that every dialect has is the
-- same in all of them.

-- name: header
-- Whose file it is, which version its schema has, and whether anything is in it.
SELECT
    (SELECT application_id FROM pragma_application_id()) AS application,
    (SELECT user_version FROM pragma_user_version())     AS version,
    (SELECT count(*) FROM sqlite_schema)                 AS tables

-- name: now
-- The host's clock in epoch milliseconds. unixepoch is a floating-point number of seconds: round, never cut.
SELECT CAST(round(unixepoch('subsec') * 1000) AS INTEGER) AS now_ms

-- name: slot_save
-- Writes a slot's row. Its transaction holds the write lock since before the row was read, so nothing is overwritten.
INSERT INTO slots (
    namespace, job, slot, state, node, attempt, token, since_ms, until_ms, attempts, verdict, touched_ms, document, version
)
VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12, ?13, ?14)
ON CONFLICT (namespace, job, slot) DO UPDATE SET
    state      = excluded.state,
    node       = excluded.node,
    attempt    = excluded.attempt,
    token      = excluded.token,
    since_ms   = excluded.since_ms,
    until_ms   = excluded.until_ms,
    attempts   = excluded.attempts,
    verdict    = excluded.verdict,
    touched_ms = excluded.touched_ms,
    document   = excluded.document,
    version    = excluded.version

-- name: latest_save
-- Writes what a job has come to lately, as of now.
INSERT INTO latest (namespace, job, changed_ms, latest)
VALUES (?1, ?2, ?3, ?4)
ON CONFLICT (namespace, job) DO UPDATE SET changed_ms = excluded.changed_ms, latest = excluded.latest

-- name: outputs_forget
-- Removes the outputs of a slot whose records are older than the retention.
DELETE FROM outputs WHERE namespace = ?1 AND job = ?2 AND slot = ?3

-- name: output_save
-- Writes the end of a run's output, in place of an earlier one of the same claim.
INSERT INTO outputs (namespace, job, slot, attempt, token, output)
VALUES (?1, ?2, ?3, ?4, ?5, ?6)
ON CONFLICT (namespace, job, slot, attempt, token) DO UPDATE SET output = excluded.output

-- name: output_remove
-- Removes a run's output, with the record that it belonged to.
DELETE FROM outputs WHERE namespace = ?1 AND job = ?2 AND slot = ?3 AND attempt = ?4 AND token = ?5

-- name: slot_load
-- One row as of now: a slot's row, NULL where there is none, and the job's last pause; where ?5 is not 0, what the job has come to
-- lately; and where ?4 is not 0, a row more, with `other` 1, for each of the job's other slots that is leased. By itself SQLite would
-- take the primary key, and read every slot of the job.
SELECT
    0 AS other, s.slot, s.version, s.state, s.node, s.attempt, s.token, s.since_ms, s.until_ms, s.attempts, s.document,
    NULL AS turn, l.latest, p.since_ms AS pause_since_ms, p.until_ms AS pause_until_ms, p.audit AS pause_audit
FROM (SELECT 1) AS always
LEFT JOIN slots AS s ON s.namespace = ?1 AND s.job = ?2 AND s.slot = ?3
LEFT JOIN pauses AS p ON p.namespace = ?1 AND p.job = ?2
LEFT JOIN latest AS l ON ?5 AND l.namespace = ?1 AND l.job = ?2
UNION ALL
SELECT
    1, o.slot, o.version, o.state, o.node, o.attempt, o.token, o.since_ms, o.until_ms, o.attempts, NULL, NULL, NULL, NULL, NULL, NULL
FROM slots AS o INDEXED BY slots_running
WHERE ?4 AND o.namespace = ?1 AND o.job = ?2 AND o.state = 'running' AND o.slot <> ?3
    AND o.until_ms > CAST(round(unixepoch('subsec') * 1000) AS INTEGER)

-- name: slots_read
-- The rows of many slots. ?2 is a JSON array of [job, slot]; CROSS JOIN keeps it the outer loop.
SELECT
    s.job, s.slot, s.state, s.node, s.attempt, s.token, s.since_ms, s.until_ms, s.attempts, s.document
FROM json_each(?2) AS asked
CROSS JOIN slots AS s
    ON s.namespace = ?1 AND s.job = asked.value ->> 0 AND s.slot = asked.value ->> 1

-- name: output_read
-- The end of one run's output.
SELECT output FROM outputs WHERE namespace = ?1 AND job = ?2 AND slot = ?3 AND attempt = ?4 AND token = ?5

-- name: latest_read
-- What jobs have come to lately. ?2 is a JSON array of names.
SELECT l.job, l.latest FROM json_each(?2) AS asked CROSS JOIN latest AS l ON l.namespace = ?1 AND l.job = asked.value

-- name: pause_get
-- A job's last pause.
SELECT job, since_ms, until_ms, audit FROM pauses WHERE namespace = ?1 AND job = ?2

-- name: pause_read
-- A job's last pause, to look at.
SELECT job, since_ms, until_ms, audit FROM pauses WHERE namespace = ?1 AND job = ?2

-- name: pause_set
-- Sets a job's pause in place of an earlier one.
INSERT INTO pauses (namespace, job, since_ms, until_ms, audit)
VALUES (?1, ?2, ?3, ?4, ?5)
ON CONFLICT (namespace, job) DO UPDATE SET
    since_ms = excluded.since_ms, until_ms = excluded.until_ms, audit = excluded.audit

-- name: pauses
-- Every job's last pause, by name.
SELECT job, since_ms, until_ms, audit FROM pauses WHERE namespace = ?1 ORDER BY job

-- name: jobs_register
-- Makes the registry know jobs. The earliest first_seen_ms of a name is kept, and the whole of an entry of a file where the new one
-- is from elsewhere: only such a one says where it is from, and quotes inside of values are escaped. ?2 is a JSON array of [name,
-- entry, first_seen_ms]. WHERE TRUE tells the parser that ON begins no join.
INSERT INTO jobs (namespace, name, first_seen_ms, entry)
SELECT ?1, asked.value ->> 0, asked.value ->> 2, asked.value ->> 1 FROM json_each(?2) AS asked
WHERE TRUE
ON CONFLICT (namespace, name) DO UPDATE SET entry = excluded.entry,
  first_seen_ms = min(first_seen_ms, excluded.first_seen_ms)
WHERE (entry <> excluded.entry OR excluded.first_seen_ms < first_seen_ms)
  AND (instr(excluded.entry, '"origin":"') = 0 OR instr(entry, '"origin":"') > 0)

-- name: jobs
-- Every known job, by name.
SELECT name, first_seen_ms, entry FROM jobs WHERE namespace = ?1 ORDER BY name

-- name: nodes_forget
-- Removes nodes that were last seen at or before ?2.
DELETE FROM nodes WHERE namespace = ?1 AND seen_ms <= ?2

-- name: node_known
-- Whether a node of this name has reported.
SELECT name FROM nodes WHERE namespace = ?1 AND name = ?2

-- name: node_save
-- A node's last report; one per name.
INSERT INTO nodes (namespace, name, instance, seen_ms, report)
VALUES (?1, ?2, ?3, ?4, ?5)
ON CONFLICT (namespace, name) DO UPDATE SET
    instance = excluded.instance, seen_ms = excluded.seen_ms, report = excluded.report

-- name: nodes
-- Every node that was seen after ?2, by name.
SELECT name, seen_ms, report FROM nodes WHERE namespace = ?1 AND seen_ms > ?2 ORDER BY name

-- name: purge
-- Removes at most ?4 slots whose records were last changed at or before ?2, except where a mark still stands at ?3.
DELETE FROM slots
WHERE (namespace, job, slot) IN (
    SELECT namespace, job, slot FROM slots
    WHERE namespace = ?1 AND touched_ms <= ?2 AND (until_ms IS NULL OR until_ms <= ?3)
    ORDER BY touched_ms
    LIMIT ?4
)

-- name: latest_purge
-- Removes what was last changed at or before ?2.
DELETE FROM latest WHERE namespace = ?1 AND changed_ms <= ?2

-- name: notes_save
-- Keeps pages; each takes the place of its earlier form. ?2 is a JSON array of [job, slot, page, last, kept from, record].
-- WHERE TRUE tells the parser that ON begins no join.
INSERT INTO notes (namespace, job, slot, page, last_ms, kept_from_ms, record)
SELECT ?1, n.value ->> 0, n.value ->> 1, n.value ->> 2, n.value ->> 3, n.value ->> 4, n.value ->> 5
FROM json_each(?2) AS n
WHERE TRUE
ON CONFLICT (namespace, job, slot, page) DO UPDATE SET
    last_ms = excluded.last_ms, kept_from_ms = excluded.kept_from_ms, record = excluded.record

-- name: notes_there
-- The pages of many slots without what is in them; ?2 as in `slots_read`.
SELECT n.job, n.slot, n.page, n.last_ms
FROM json_each(?2) AS asked
CROSS JOIN notes AS n
    ON n.namespace = ?1 AND n.job = asked.value ->> 0 AND n.slot = asked.value ->> 1

-- name: notes_read
-- A slot's pages, unless they were last changed at or before ?4.
SELECT record FROM notes WHERE namespace = ?1 AND job = ?2 AND slot = ?3 AND kept_from_ms > ?4

-- name: notes_forget
-- Removes one page.
DELETE FROM notes WHERE namespace = ?1 AND job = ?2 AND slot = ?3 AND page = ?4

-- name: notes_purge
-- Removes at most ?3 pages that were kept from ?2 on or before.
DELETE FROM notes
WHERE (namespace, job, slot, page) IN (
    SELECT namespace, job, slot, page FROM notes
    WHERE namespace = ?1 AND kept_from_ms <= ?2
    ORDER BY kept_from_ms
    LIMIT ?3
)

-- name: trial_jobs
-- Removes a job that was only tried from the registry.
DELETE FROM jobs WHERE namespace = ?1 AND name = ?2

-- name: trial_nodes
-- Removes a node that was only tried.
DELETE FROM nodes WHERE namespace = ?1 AND name = ?2

-- name: trial_pauses
-- Removes the pause of a job that was only tried.
DELETE FROM pauses WHERE namespace = ?1 AND job = ?2

-- name: trial_slots
-- Removes every slot of a job that was only tried.
DELETE FROM slots WHERE namespace = ?1 AND job = ?2

-- name: trial_notes
-- Removes what was noted on a job that was only tried.
DELETE FROM notes WHERE namespace = ?1 AND job = ?2

-- name: trial_locks
-- Removes a lock that was only tried.
DELETE FROM locks WHERE namespace = ?1 AND lock = ?2

-- name: trial_latest
-- Removes what a job has come to that was only tried.
DELETE FROM latest WHERE namespace = ?1 AND job = ?2

-- name: locks_read
-- The queues of several locks: a row for each, NULL where nobody has used it. ?2 is a JSON array of names.
SELECT l.lock, l.version, l.document
FROM json_each(?2) AS asked
LEFT JOIN locks AS l ON l.namespace = ?1 AND l.lock = asked.value

-- name: locks_all
-- Every lock that is known, by name; a row of NULL where there is none.
SELECT l.lock, l.version, l.document FROM (SELECT 1) LEFT JOIN locks AS l ON l.namespace = ?1 ORDER BY l.lock

-- name: lock_save
-- Writes a lock's queue. Its transaction holds the write lock since before the row was read, so nothing is overwritten.
INSERT INTO locks (namespace, lock, needed_ms, document, version)
VALUES (?1, ?2, ?3, ?4, ?5)
ON CONFLICT (namespace, lock) DO UPDATE SET
    needed_ms = excluded.needed_ms, document = excluded.document, version = excluded.version

-- name: locks_purge
-- Removes at most ?3 locks of which nothing was needed after ?2.
DELETE FROM locks
WHERE (namespace, lock) IN (
    SELECT namespace, lock FROM locks WHERE namespace = ?1 AND needed_ms <= ?2 ORDER BY needed_ms LIMIT ?3
)

-- name: messages_read
-- What is known of several topics' messages: a row for each, NULL where nothing was told of it. ?2 is a JSON array of names.
SELECT m.topic, m.version, m.document
FROM json_each(?2) AS asked
LEFT JOIN messages AS m ON m.namespace = ?1 AND m.topic = asked.value

-- name: messages_insert
-- Writes what is known of a topic that had no row, unless there is one by now.
INSERT INTO messages (namespace, topic, needed_ms, document, version)
VALUES (?1, ?2, ?3, ?4, ?5)
ON CONFLICT (namespace, topic) DO NOTHING

-- name: messages_update
-- Writes what is known of a topic whose row still has the version that was read.
UPDATE messages SET needed_ms = ?1, document = ?2, version = ?3
WHERE namespace = ?4 AND topic = ?5 AND version = ?6

-- name: messages_purge
-- Removes at most ?3 topics of which nothing was needed after ?2.
DELETE FROM messages
WHERE (namespace, topic) IN (
    SELECT namespace, topic FROM messages WHERE namespace = ?1 AND needed_ms <= ?2 ORDER BY needed_ms LIMIT ?3
)

-- name: trial_messages
-- Removes messages about a job that was only tried.
DELETE FROM messages WHERE namespace = ?1 AND topic = ?2
