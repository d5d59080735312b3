-- The host's clock in epoch milliseconds. unixepoch is a floating-point number of seconds: round, never cut.
SELECT CAST(round(unixepoch('subsec') * 1000) AS INTEGER) AS now_ms
