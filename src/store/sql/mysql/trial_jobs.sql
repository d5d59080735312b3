-- Removes a job that was only tried from the registry.
DELETE FROM cronward_jobs WHERE namespace = ? AND name = ?
