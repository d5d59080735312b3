-- Whether there is a table of versions.
SELECT count(*) FROM information_schema.tables WHERE table_schema = database() AND table_name = 'cronward_schema'
