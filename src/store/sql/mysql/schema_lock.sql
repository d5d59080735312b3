-- One lock for all who make the tables of this database; its name has a limit that a database's name can exceed.
SELECT CAST(get_lock(concat('cronward.', md5(database())), ?) AS SIGNED) AS locked
