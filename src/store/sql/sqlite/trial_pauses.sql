-- Removes the pause of a job that was only tried.
DELETE FROM pauses WHERE namespace = ?1 AND job = ?2
