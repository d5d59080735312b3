-- Adds an operator's verb to a slot's audit.
INSERT INTO audit (namespace, job, start_ms, record) VALUES (?1, ?2, ?3, ?4)
