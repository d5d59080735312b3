-- Publishes a hint when the transaction commits.
SELECT pg_notify($1, $2)
