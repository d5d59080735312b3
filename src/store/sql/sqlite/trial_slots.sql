-- Removes every slot of a job that was only tried.
DELETE FROM slots WHERE namespace = ?1 AND job = ?2
