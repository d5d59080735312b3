-- Removes what was noted on a job that was only tried.
DELETE FROM cronward_notes WHERE namespace = $1 AND job = $2
