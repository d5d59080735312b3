-- Removes what was noted on a job that was only tried.
DELETE FROM notes WHERE namespace = ?1 AND job = ?2
