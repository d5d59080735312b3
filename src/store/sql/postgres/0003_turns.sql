-- Schema version 3: what runs of a job is found without looking at its other slots; and of two slots of a job that are claimed at
-- once, each of which must run alone, one is granted: such a grant takes the job's next turn, and no turn is taken twice.
ALTER TABLE cronward_slots ADD COLUMN IF NOT EXISTS turn bigint;

-- Without the end of the lease, so that a renewal changes no index.
CREATE INDEX IF NOT EXISTS cronward_slots_leased ON cronward_slots (namespace, job) WHERE mark = 'lease';

CREATE UNIQUE INDEX IF NOT EXISTS cronward_slots_turns ON cronward_slots (namespace, job, turn) WHERE turn IS NOT NULL;
