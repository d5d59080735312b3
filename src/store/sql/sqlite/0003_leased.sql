-- Schema version 3: what runs of a job is found without looking at its other slots.
CREATE INDEX IF NOT EXISTS slots_leased ON slots (namespace, job) WHERE mark = 'lease';

PRAGMA user_version = 3;
