-- Whether there is a table of versions. to_regclass() would go on saying what it said before another process made it.
SELECT count(*) FROM pg_catalog.pg_class WHERE relname = 'cronward_schema' AND pg_catalog.pg_table_is_visible(oid)
