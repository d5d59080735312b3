-- As schema_lock.sql.
DO release_lock(concat('cronward.', md5(database())))
