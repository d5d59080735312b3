-- "CRWD": one lock for all who make the tables, held until the transaction ends.
SELECT pg_advisory_xact_lock(1129469764)
