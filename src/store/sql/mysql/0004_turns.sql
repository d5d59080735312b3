-- Schema version 4: what runs of a job is found without looking at its other slots; and of two slots of a job that are claimed at
-- once, each of which must run alone, one is granted: such a grant takes the job's next turn, and no turn is taken twice. MySQL
-- knows no ADD COLUMN IF NOT EXISTS, and this can be run again.
SET @cronward_step = (
    SELECT if(
        count(*) > 0,
        'DO 0',
        'ALTER TABLE cronward_slots
            ADD COLUMN turn BIGINT,
            ADD KEY slots_by_mark (namespace, job, mark),
            ADD UNIQUE KEY slots_by_turn (namespace, job, turn)'
    )
    FROM information_schema.columns
    WHERE table_schema = database() AND table_name = 'cronward_slots' AND column_name = 'turn'
);
PREPARE cronward_step FROM @cronward_step;
EXECUTE cronward_step;
DEALLOCATE PREPARE cronward_step
