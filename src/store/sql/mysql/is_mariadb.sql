-- MariaDB says so in its version.
SELECT CAST(instr(version(), 'MariaDB') > 0 AS SIGNED) AS is_mariadb
