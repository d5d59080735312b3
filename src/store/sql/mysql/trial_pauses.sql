-- Removes the pause of a job that was only tried.
DELETE FROM cronward_pauses WHERE namespace = ? AND job = ?
