-- A SELECT that takes longer than so many milliseconds is given up; a client that was stopped loses its locks after a minute.
SET SESSION max_execution_time = ?, SESSION wait_timeout = 60
