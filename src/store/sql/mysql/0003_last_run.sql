-- Schema version 3: the run that was written last stands in the slot's row, so that a grant and its record are one statement.
-- cronward_runs has the others; where it has that one as well, the row's is the newer. MySQL knows no ADD COLUMN IF NOT EXISTS,
-- and this can be run again.
SET @cronward_step = (
    SELECT if(
        count(*) > 0,
        'DO 0',
        'ALTER TABLE cronward_slots
            ADD COLUMN run_attempt BIGINT,
            ADD COLUMN run_token VARCHAR(64) CHARACTER SET ascii COLLATE ascii_bin,
            ADD COLUMN run_record LONGTEXT CHARACTER SET utf8mb4'
    )
    FROM information_schema.columns
    WHERE table_schema = database() AND table_name = 'cronward_slots' AND column_name = 'run_record'
);
PREPARE cronward_step FROM @cronward_step;
EXECUTE cronward_step;
DEALLOCATE PREPARE cronward_step
