-- Removes every slot of a job that was only tried.
DELETE FROM cronward_slots WHERE namespace = $1 AND job = $2
