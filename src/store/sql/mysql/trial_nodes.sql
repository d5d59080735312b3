-- Removes a node that was only tried.
DELETE FROM cronward_nodes WHERE namespace = ? AND name = ?
