-- Whose file it is, which version its schema has, and whether anything is in it.
SELECT
    (SELECT application_id FROM pragma_application_id()) AS application,
    (SELECT user_version FROM pragma_user_version())     AS version,
    (SELECT count(*) FROM sqlite_schema)                 AS tables
