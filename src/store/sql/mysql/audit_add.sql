-- Adds an operator's verb to a slot's audit.
INSERT INTO cronward_audit (namespace, job, start_ms, record) VALUES (?, ?, ?, ?)
