-- What is asked of PostgreSQL: each statement by its name. What a number stands for in a statement that every dialect has is the
-- same in all of them.

-- name: greet
-- For this connection: what takes longer than $1 milliseconds is given up, whatever the server's defaults are. Answers the encoding of
-- the database.
SELECT
    set_config('default_transaction_isolation', 'read committed', false),
    set_config('default_transaction_read_only', 'off', false),
    set_config('statement_timeout', $1, false),
    set_config('lock_timeout', $1, false),
    set_config('idle_in_transaction_session_timeout', $1, false),
    set_config('client_min_messages', 'error', false),
    current_setting('server_encoding') AS encoding

-- name: begin
-- Each statement sees what was committed before it.
BEGIN ISOLATION LEVEL READ COMMITTED

-- name: begin_snapshot
-- Everything as of one instant.
BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY

-- name: now
-- The server's clock in epoch milliseconds. now() would be the transaction's beginning.
SELECT floor(extract(epoch FROM clock_timestamp()) * 1000)::bigint AS now_ms

-- name: settings
-- What the server says of how it keeps what it answers.
SELECT name::text AS name, setting::text AS setting
FROM pg_catalog.pg_settings
WHERE name IN (
    'server_version', 'synchronous_commit', 'fsync', 'full_page_writes', 'synchronous_standby_names',
    'default_transaction_read_only'
)
UNION ALL
SELECT 'in_recovery', pg_catalog.pg_is_in_recovery()::text

-- name: schema_lock
-- "CRWD": one lock for all who make the tables, held until the transaction ends.
SELECT pg_advisory_xact_lock(1129469764)

-- name: schema_unlock
-- As `schema_lock`.
COMMIT

-- name: schema_there
-- Whether there is a table of versions. to_regclass() would go on saying what it said before another process made it.
SELECT count(*) FROM pg_catalog.pg_class WHERE relname = 'cronward_schema' AND pg_catalog.pg_table_is_visible(oid)

-- name: schema_version
-- The version of the tables.
SELECT max(version) FROM cronward_schema

-- name: tell
-- Publishes a hint when the transaction commits.
SELECT pg_notify($1, $2)

-- name: slot_write
-- Writes what a rule has changed: the row and all that belongs to it, or nothing but a turn, which does no harm. $1 to $14 are the
-- slot's row; $15 the version that was read, NULL when there was no row; $16 when it was read, and $17 how long ago that may be; $18
-- and $19 the job's turn after it, and the one that was read; $20 and $21 the channel and a hint; $22 is not 0 where all outputs of
-- the slot go; $23 to $25 a run's attempt, token and output, which goes where it is NULL; $26 what the job has come to lately, where
-- that changes. Each but the row may be NULL. Versions and turns are larger than any that there were, also in rows that were purged:
-- they are never below the clock. Who waits for another's turn to be written finds that it is not the one that was read; a turn that was read and
-- is gone, because somebody has forgotten the job, is not made again. With $26 the
-- turn is kept for this statement first, and written only with the row; it is there already (`turn_begin`).
WITH first AS (
    INSERT INTO cronward_turns (namespace, job, turn)
    SELECT $1, $2, $18 WHERE $18 IS NOT NULL AND $26 IS NULL AND $19 IS NULL
    ON CONFLICT DO NOTHING
    RETURNING 1
), next AS (
    UPDATE cronward_turns SET turn = $18
    WHERE $18 IS NOT NULL AND $26 IS NULL AND namespace = $1 AND job = $2 AND turn = $19
    RETURNING 1
), taken AS (
    SELECT 1 FROM first UNION ALL SELECT 1 FROM next
), held AS MATERIALIZED (
    SELECT 1 FROM cronward_turns WHERE $26 IS NOT NULL AND namespace = $1 AND job = $2 AND turn = $19 FOR UPDATE
), fresh AS (
    INSERT INTO cronward_slots (
        namespace, job, slot, state, node, attempt, token, since_ms, until_ms, attempts, verdict, touched_ms, document, version
    )
    SELECT $1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14
    WHERE $15 IS NULL AND CASE WHEN $18 IS NULL OR EXISTS (SELECT FROM taken) OR EXISTS (SELECT FROM held) THEN
        floor(extract(epoch FROM clock_timestamp()) * 1000)::bigint - $16 <= $17 END
    ON CONFLICT DO NOTHING
    RETURNING 1
), changed AS (
    UPDATE cronward_slots SET
        state      = $4,
        node       = $5,
        attempt    = $6,
        token      = $7,
        since_ms   = $8,
        until_ms   = $9,
        attempts   = $10,
        verdict    = $11,
        touched_ms = $12,
        document   = $13,
        version    = $14
    WHERE namespace = $1 AND job = $2 AND slot = $3 AND version = $15
        AND CASE WHEN $18 IS NULL OR EXISTS (SELECT FROM taken) OR EXISTS (SELECT FROM held) THEN
            floor(extract(epoch FROM clock_timestamp()) * 1000)::bigint - $16 <= $17 END
    RETURNING 1
), saved AS (
    SELECT 1 FROM fresh UNION ALL SELECT 1 FROM changed
), learnt AS (
    UPDATE cronward_turns AS t SET turn = $18, latest = $26 FROM saved
    WHERE $26 IS NOT NULL AND t.namespace = $1 AND t.job = $2 AND t.turn = $19
), gone AS (
    DELETE FROM cronward_outputs AS o USING saved
    WHERE ($22 <> 0 OR $23 IS NOT NULL) AND o.namespace = $1 AND o.job = $2 AND o.slot = $3
        AND ($22 <> 0 OR (o.attempt = $23 AND o.token = $24))
        AND NOT ($25 IS NOT NULL AND o.attempt = $23 AND o.token = $24)
), kept AS (
    INSERT INTO cronward_outputs (namespace, job, slot, attempt, token, output)
    SELECT $1, $2, $3, $23, $24, $25 FROM saved WHERE $25 IS NOT NULL
    ON CONFLICT (namespace, job, slot, attempt, token) DO UPDATE SET output = excluded.output
), told AS (
    SELECT pg_notify($20, $21) FROM saved WHERE $21 IS NOT NULL
)
SELECT (SELECT count(*) FROM saved) AS written, (SELECT count(*) FROM told) AS hints

-- name: turn_begin
-- Makes the row of a job that had no turn, with a turn that nobody has been granted: for `slot_write` to change.
INSERT INTO cronward_turns (namespace, job, turn) VALUES ($1, $2, 0) ON CONFLICT DO NOTHING

-- name: slot_load
-- One row as of one instant, the server's clock: a slot's row, NULL where there is none, and the job's last pause; where $4 or $5 is
-- not 0, the job's last turn, and what it has come to lately; and where $4 is not 0, a row more, with `other` 1, for each of the job's
-- other slots that is leased.
WITH clock AS MATERIALIZED (
    SELECT floor(extract(epoch FROM clock_timestamp()) * 1000)::bigint AS now_ms
)
SELECT
    0::bigint AS other, clock.now_ms, s.slot, s.version, s.state, s.node, s.attempt, s.token, s.since_ms, s.until_ms, s.attempts,
    s.document,
    t.turn, t.latest,
    p.since_ms AS pause_since_ms, p.until_ms AS pause_until_ms, p.audit AS pause_audit
FROM clock
LEFT JOIN cronward_slots AS s ON s.namespace = $1 AND s.job = $2 AND s.slot = $3
LEFT JOIN cronward_pauses AS p ON p.namespace = $1 AND p.job = $2
LEFT JOIN cronward_turns AS t ON ($4 <> 0 OR $5 <> 0) AND t.namespace = $1 AND t.job = $2
UNION ALL
SELECT
    1, clock.now_ms, o.slot, o.version, o.state, o.node, o.attempt, o.token, o.since_ms, o.until_ms, o.attempts,
    NULL, NULL, NULL, NULL, NULL, NULL
FROM clock
JOIN cronward_slots AS o
    ON o.namespace = $1 AND o.job = $2 AND o.state = 'running' AND o.slot <> $3 AND o.until_ms > clock.now_ms
WHERE $4 <> 0

-- name: slots_read
-- The rows of many slots. $2 is a JSON array of [job, slot].
SELECT
    s.job, s.slot, s.state, s.node, s.attempt, s.token, s.since_ms, s.until_ms, s.attempts, s.document
FROM json_array_elements($2::text::json) AS asked (named)
JOIN cronward_slots AS s
    ON s.namespace = $1 AND s.job = named ->> 0 AND s.slot = named ->> 1

-- name: output_read
-- The end of one run's output.
SELECT output FROM cronward_outputs WHERE namespace = $1 AND job = $2 AND slot = $3 AND attempt = $4 AND token = $5

-- name: latest_read
-- What jobs have come to lately. $2 is a JSON array of names.
SELECT t.job, t.latest
FROM json_array_elements_text($2::text::json) AS asked (name)
JOIN cronward_turns AS t ON t.namespace = $1 AND t.job = asked.name

-- name: pause_get
-- A job's last pause; nobody else changes it until this transaction ends.
SELECT job, since_ms, until_ms, audit FROM cronward_pauses WHERE namespace = $1 AND job = $2 FOR UPDATE

-- name: pause_read
-- A job's last pause, to look at.
SELECT job, since_ms, until_ms, audit FROM cronward_pauses WHERE namespace = $1 AND job = $2

-- name: pause_set
-- Sets a job's pause in place of an earlier one.
INSERT INTO cronward_pauses (namespace, job, since_ms, until_ms, audit)
VALUES ($1, $2, $3, $4, $5)
ON CONFLICT (namespace, job) DO UPDATE SET
    since_ms = excluded.since_ms, until_ms = excluded.until_ms, audit = excluded.audit

-- name: pauses
-- Every job's last pause, by name.
SELECT job, since_ms, until_ms, audit FROM cronward_pauses WHERE namespace = $1 ORDER BY job

-- name: jobs_register
-- Makes the registry know jobs. The earliest first_seen_ms of a name is kept, and the whole of an entry of a file where the new one
-- is from elsewhere: only such a one says where it is from, and quotes inside of values are escaped. $2 is a JSON array of [name,
-- entry, first_seen_ms].
INSERT INTO cronward_jobs AS known (namespace, name, first_seen_ms, entry)
SELECT $1, job ->> 0, (job ->> 2)::bigint, job ->> 1 FROM json_array_elements($2::text::json) AS asked (job)
ON CONFLICT (namespace, name) DO UPDATE SET entry = excluded.entry,
  first_seen_ms = least(known.first_seen_ms, excluded.first_seen_ms)
WHERE (known.entry <> excluded.entry OR excluded.first_seen_ms < known.first_seen_ms)
  AND (strpos(excluded.entry, '"origin":"') = 0 OR strpos(known.entry, '"origin":"') > 0)

-- name: jobs
-- Every known job, by name.
SELECT name, first_seen_ms, entry FROM cronward_jobs WHERE namespace = $1 ORDER BY name

-- name: nodes_forget
-- Removes nodes that were last seen at or before $2. One that somebody else removes is left to them.
DELETE FROM cronward_nodes
WHERE (namespace, name) IN (
    SELECT namespace, name FROM cronward_nodes WHERE namespace = $1 AND seen_ms <= $2 FOR UPDATE SKIP LOCKED
)

-- name: node_known
-- Whether a node of this name has reported.
SELECT name FROM cronward_nodes WHERE namespace = $1 AND name = $2

-- name: node_save
-- A node's last report; one per name.
INSERT INTO cronward_nodes (namespace, name, instance, seen_ms, report)
VALUES ($1, $2, $3, $4, $5)
ON CONFLICT (namespace, name) DO UPDATE SET
    instance = excluded.instance, seen_ms = excluded.seen_ms, report = excluded.report

-- name: nodes
-- Every node that was seen after $2, by name.
SELECT name, seen_ms, report FROM cronward_nodes WHERE namespace = $1 AND seen_ms > $2 ORDER BY name

-- name: purge
-- Removes at most $4 slots whose records were last changed at or before $2, except where a mark still stands at $3. One that
-- somebody changes now is left alone.
DELETE FROM cronward_slots
WHERE (namespace, job, slot) IN (
    SELECT namespace, job, slot FROM cronward_slots
    WHERE namespace = $1 AND touched_ms <= $2 AND (until_ms IS NULL OR until_ms <= $3)
    ORDER BY touched_ms
    LIMIT $4
    FOR UPDATE SKIP LOCKED
)

-- name: turns_purge
-- Removes the turns from $2 or before of jobs that have no slots; from $3 or before where the job has come to anything: with each
-- change of that it had another turn. The next turn of such a job is never below the clock.
DELETE FROM cronward_turns
WHERE (namespace, job) IN (
    SELECT namespace, job FROM cronward_turns AS t
    WHERE namespace = $1 AND turn <= CASE WHEN latest IS NULL THEN $2 ELSE $3 END
        AND NOT EXISTS (SELECT FROM cronward_slots AS s WHERE s.namespace = t.namespace AND s.job = t.job)
    FOR UPDATE SKIP LOCKED
)

-- name: notes_save
-- Keeps pages; each takes the place of its earlier form. $2 is a JSON array of [job, slot, page, last, kept from, record].
INSERT INTO cronward_notes (namespace, job, slot, page, last_ms, kept_from_ms, record)
SELECT $1, n ->> 0, n ->> 1, n ->> 2, (n ->> 3)::bigint, (n ->> 4)::bigint, n ->> 5
FROM json_array_elements($2::text::json) AS asked (n)
ON CONFLICT (namespace, job, slot, page) DO UPDATE SET
    last_ms = excluded.last_ms, kept_from_ms = excluded.kept_from_ms, record = excluded.record

-- name: notes_there
-- The pages of many slots without what is in them; $2 as in `slots_read`.
SELECT n.job, n.slot, n.page, n.last_ms
FROM json_array_elements($2::text::json) AS asked (named)
JOIN cronward_notes AS n
    ON n.namespace = $1 AND n.job = named ->> 0 AND n.slot = named ->> 1

-- name: notes_read
-- A slot's pages, unless they were last changed at or before $4.
SELECT record FROM cronward_notes WHERE namespace = $1 AND job = $2 AND slot = $3 AND kept_from_ms > $4

-- name: notes_forget
-- Removes one page.
DELETE FROM cronward_notes WHERE namespace = $1 AND job = $2 AND slot = $3 AND page = $4

-- name: notes_purge
-- Removes at most $3 pages that were kept from $2 on or before. One that somebody changes now is left alone.
DELETE FROM cronward_notes
WHERE (namespace, job, slot, page) IN (
    SELECT namespace, job, slot, page FROM cronward_notes
    WHERE namespace = $1 AND kept_from_ms <= $2
    ORDER BY kept_from_ms
    LIMIT $3
    FOR UPDATE SKIP LOCKED
)

-- name: locks_read
-- The queues of several locks as of one instant, the server's clock: a row for each, NULL where nobody has used it. $2 is a JSON array
-- of names.
WITH clock AS MATERIALIZED (
    SELECT floor(extract(epoch FROM clock_timestamp()) * 1000)::bigint AS now_ms
)
SELECT clock.now_ms, l.lock, l.version, l.document
FROM clock
CROSS JOIN json_array_elements_text($2::text::json) AS asked (name)
LEFT JOIN cronward_locks AS l ON l.namespace = $1 AND l.lock = asked.name

-- name: locks_all
-- Every lock that is known, by name, as of one instant, the server's clock; a row of NULL where there is none.
WITH clock AS MATERIALIZED (
    SELECT floor(extract(epoch FROM clock_timestamp()) * 1000)::bigint AS now_ms
)
SELECT clock.now_ms, l.lock, l.version, l.document
FROM clock
LEFT JOIN cronward_locks AS l ON l.namespace = $1
ORDER BY l.lock

-- name: locks_write
-- Writes queues of locks, all or none. $2 is a JSON array of [lock, until when it is needed, document, version, the version that was
-- read, NULL where there was no row]; $3 when they were read, and $4 how long ago that may be; $5 and $6 the channel and a JSON array of
-- hints. Rows that were there are locked first, in the order of their names, and nothing is written unless each has its version still.
-- A row that was not there and is by now ends the statement with an error, and nothing of it is written either.
WITH asked AS MATERIALIZED (
    SELECT
        a ->> 0 AS lock, (a ->> 1)::bigint AS needed_ms, a ->> 2 AS document, (a ->> 3)::bigint AS version,
        (a ->> 4)::bigint AS read_version
    FROM json_array_elements($2::text::json) AS listed (a)
), held AS MATERIALIZED (
    SELECT l.lock
    FROM cronward_locks AS l
    JOIN asked ON l.namespace = $1 AND l.lock = asked.lock AND l.version = asked.read_version
    ORDER BY l.lock
    FOR UPDATE OF l
), sound AS MATERIALIZED (
    SELECT 1
    WHERE CASE WHEN (SELECT count(*) FROM held) = (SELECT count(read_version) FROM asked) THEN
        floor(extract(epoch FROM clock_timestamp()) * 1000)::bigint - $3 <= $4 END
), fresh AS (
    INSERT INTO cronward_locks (namespace, lock, needed_ms, document, version)
    SELECT $1, lock, needed_ms, document, version FROM asked
    WHERE read_version IS NULL AND EXISTS (SELECT FROM sound)
    ORDER BY lock COLLATE "C"
    RETURNING 1
), changed AS (
    UPDATE cronward_locks AS l SET needed_ms = asked.needed_ms, document = asked.document, version = asked.version
    FROM asked
    WHERE l.namespace = $1 AND l.lock = asked.lock AND l.version = asked.read_version AND EXISTS (SELECT FROM sound)
    RETURNING 1
), told AS (
    SELECT pg_notify($5, hint) FROM sound CROSS JOIN json_array_elements_text($6::text::json) AS hints (hint)
)
SELECT
    (SELECT count(*) FROM fresh) + (SELECT count(*) FROM changed) AS written, (SELECT count(*) FROM told) AS hints

-- name: locks_purge
-- Removes at most $3 locks of which nothing was needed after $2. One that somebody changes now is left alone.
DELETE FROM cronward_locks
WHERE (namespace, lock) IN (
    SELECT namespace, lock FROM cronward_locks
    WHERE namespace = $1 AND needed_ms <= $2
    ORDER BY needed_ms
    LIMIT $3
    FOR UPDATE SKIP LOCKED
)

-- name: trial_jobs
-- Removes a job that was only tried from the registry.
DELETE FROM cronward_jobs WHERE namespace = $1 AND name = $2

-- name: trial_nodes
-- Removes a node that was only tried.
DELETE FROM cronward_nodes WHERE namespace = $1 AND name = $2

-- name: trial_pauses
-- Removes the pause of a job that was only tried.
DELETE FROM cronward_pauses WHERE namespace = $1 AND job = $2

-- name: trial_slots
-- Removes every slot of a job that was only tried.
DELETE FROM cronward_slots WHERE namespace = $1 AND job = $2

-- name: trial_notes
-- Removes what was noted on a job that was only tried.
DELETE FROM cronward_notes WHERE namespace = $1 AND job = $2

-- name: trial_locks
-- Removes a lock that was only tried.
DELETE FROM cronward_locks WHERE namespace = $1 AND lock = $2

-- name: trial_latest
-- Removes the turn of a job that was only tried, and what it has come to.
DELETE FROM cronward_turns WHERE namespace = $1 AND job = $2

-- name: messages_read
-- What is known of several topics' messages, as of one instant, the server's clock: a row for each, NULL where nothing was told of it. $2
-- is a JSON array of names.
WITH clock AS MATERIALIZED (
    SELECT floor(extract(epoch FROM clock_timestamp()) * 1000)::bigint AS now_ms
)
SELECT clock.now_ms, m.topic, m.version, m.document
FROM clock
CROSS JOIN json_array_elements_text($2::text::json) AS asked (name)
LEFT JOIN cronward_messages AS m ON m.namespace = $1 AND m.topic = asked.name

-- name: messages_insert
-- Writes what is known of a topic that had no row, unless there is one by now.
INSERT INTO cronward_messages (namespace, topic, needed_ms, document, version)
VALUES ($1, $2, $3, $4, $5)
ON CONFLICT (namespace, topic) DO NOTHING

-- name: messages_update
-- Writes what is known of a topic whose row still has the version that was read.
UPDATE cronward_messages SET needed_ms = $1, document = $2, version = $3
WHERE namespace = $4 AND topic = $5 AND version = $6

-- name: messages_purge
-- Removes at most $3 topics of which nothing was needed after $2. One that somebody changes now is left alone.
DELETE FROM cronward_messages
WHERE (namespace, topic) IN (
    SELECT namespace, topic FROM cronward_messages
    WHERE namespace = $1 AND needed_ms <= $2
    ORDER BY needed_ms
    LIMIT $3
    FOR UPDATE SKIP LOCKED
)

-- name: trial_messages
-- Removes messages about a job that was only tried.
DELETE FROM cronward_messages WHERE namespace = $1 AND topic = $2
