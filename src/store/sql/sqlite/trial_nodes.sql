-- Removes a node that was only tried.
DELETE FROM nodes WHERE namespace = ?1 AND name = ?2
