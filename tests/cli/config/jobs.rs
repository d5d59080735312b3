//! What is wrong in a job.

use super::{config, job, tells, told};

#[test]
fn a_job_needs_a_schedule_and_a_command() {
    let told = told("[jobs.a]\n");
    assert_eq!(told.len(), 2);
    assert!(
        told[0].starts_with("1:7 missing-schedule: the job has no schedule (add schedule = \"0 * * * *\""),
        "{told:#?}"
    );
    assert!(told[1].starts_with("1:7 missing-command: the job has no command (add command = ["), "{told:#?}");
}

#[test]
fn a_misspelled_key_is_not_also_missing() {
    tells(
        "[jobs.a]\ncron = \"0 * * * *\"\ncommand = [\"true\"]",
        "2:1 unknown-key: unknown key cron in [jobs.a] (did you mean schedule?)",
    );
    tells(
        "[jobs.a]\nschedule = \"0 * * * *\"\ncomand = [\"true\"]",
        "3:1 unknown-key: unknown key comand in [jobs.a] (did you mean command?)",
    );
}

#[test]
fn a_job_name_that_breaks_the_rule_is_told_with_one_that_does_not() {
    for (name, expected) in [
        (
            "Bad_Name",
            "job name \"Bad_Name\" is not allowed: 1 to 52 characters: a-z, 0-9, '.', '_' and '-', beginning and \
          ending with a letter or a digit (for example [jobs.bad_name])",
        ),
        ("\"a b\"", "job name \"a b\" is not allowed"),
        ("\"../x\"", "job name \"../x\" is not allowed"),
        ("\"\"", "job name \"\" is not allowed"),
    ] {
        let text = format!("[jobs.{name}]\nschedule = \"@hourly\"\ncommand = [\"true\"]");
        tells(&text, &format!("1:7 bad-name: {expected}"));
    }
}

#[test]
fn values_of_the_wrong_type_are_told_with_an_example() {
    for (line, expected) in [
        (
            "max_attempts = \"3\"",
            "4:16 wrong-type: max_attempts must be a whole number, not a string (write max_attempts = 3)",
        ),
        ("max_attempts = 1.5", "4:16 wrong-type: max_attempts must be a whole number, not a number with a fraction"),
        ("lease_ttl = 60", "4:13 bad-duration: lease_ttl is a number without a unit (write lease_ttl = \"60s\""),
        (
            "on_lost = true",
            "4:11 wrong-type: on_lost must be one of \"continue\", \"kill\", not true or false (write on_lost = \"continue\")",
        ),
        ("enabled = \"no\"", "4:11 wrong-type: enabled must be true or false, not a string (write enabled = true)"),
        (
            "description = 5",
            "4:15 wrong-type: description must be a string, not a whole number (write description = \"5\")",
        ),
        ("tags = \"x\"", "4:8 wrong-type: tags must be a list of strings, not a string (write tags = [\"billing\"])"),
        ("notify = [1]", "4:11 wrong-type: notify[0] must be a string, not a whole number (write \"1\")"),
        (
            "only_on = [\"x\"]",
            "4:11 wrong-type: only_on must be a table of strings, not a list (write only_on = { zone = \"eu-1\" })",
        ),
        ("env = { PORT = 8080 }", "4:16 wrong-type: env.PORT must be a string, not a whole number (write \"8080\")"),
        ("timeout = 1979-05-27", "4:11 wrong-type: timeout must be a duration, not a date"),
        ("cwd = {}", "4:7 wrong-type: cwd must be a string, not a table (write cwd = \"/srv/app\")"),
    ] {
        tells(&job(line), expected);
    }
}

#[test]
fn numbers_and_durations_out_of_range_are_told_with_the_range() {
    for (line, expected) in [
        ("max_attempts = 0", "max_attempts is 0, which is out of range (from 1 to 999)"),
        ("max_attempts = 1000", "max_attempts is 1000, which is out of range (from 1 to 999)"),
        ("max_attempts = 99999999999999999999", "max_attempts is 99999999999999999999, which"),
        ("output_limit = 1048577", "output_limit is 1048577, which is out of range (from 0 to 1048576)"),
        ("output_limit = \"2MiB\"", "output_limit cannot be \"2MiB\" (write a number of bytes"),
        ("success_codes = [256]", "success_codes[0] is 256, which is out of range (from 0 to 255)"),
        ("lease_ttl = \"1ms\"", "lease_ttl is 1ms, which is out of range (from \"500ms\" to \"1d\")"),
        ("done_ttl = \"400d\"", "done_ttl is 400d, which is out of range (from \"1s\" to \"366d\")"),
        ("jitter = \"2d\"", "jitter is 2d, which is out of range (from \"0s\" to \"1d\")"),
        ("kill_after = \"2h\"", "kill_after is 2h, which is out of range (from \"0s\" to \"1h\")"),
        ("start_deadline = \"0s\"", "start_deadline is 0s, which is out of range (from \"1s\""),
    ] {
        let told = told(&job(line));
        assert_eq!(told.len(), 1, "{told:#?}");
        assert!(told[0].split_once(" out-of-range: ").unwrap().1.starts_with(expected), "{told:#?}");
    }
}

#[test]
fn words_that_are_none_of_the_known_are_told_with_the_nearest() {
    for (line, expected) in [
        (
            "slot = \"hourly\"",
            "4:8 bad-word: slot cannot be \"hourly\" (did you mean \"hour\"? One of \"hour\", \"minute\", \"day\", \"tick\", or a duration that divides a day, like \"15m\")",
        ),
        ("slot = \"7m\"", "4:8 bad-slot: slot cannot be 7m (a slot divides a day: write \"6m\" or \"8m\")"),
        ("slot = \"0s\"", "4:8 bad-slot: slot cannot be 0s (a slot divides a day: write \"1s\")"),
        ("slot = \"25h\"", "4:8 bad-slot: slot cannot be 1d 1h (a slot divides a day: write \"24h\")"),
        (
            "retry_backoff = \"linear\"",
            "4:17 bad-word: retry_backoff cannot be \"linear\" (one of \"fixed\", \"exponential\")",
        ),
        ("on_lost = \"Kill\"", "4:11 bad-word: on_lost cannot be \"Kill\" (did you mean \"kill\"?"),
        ("on_store_error = \"\"", "4:18 bad-word: on_store_error cannot be \"\""),
        ("concurrency = \"forbidden\"", "4:15 bad-word: concurrency cannot be \"forbidden\" (did you mean \"forbid\"?"),
    ] {
        tells(&job(line), expected);
    }
}

#[test]
fn a_zone_that_is_none_is_told_with_the_nearest() {
    let database = cronward::zone::Database::current();
    for (zone, near) in [("Berlin", "Europe/Berlin"), ("Europe/Berln", "Europe/Berlin"), ("utc", "UTC")] {
        let expected =
            format!("4:12 bad-timezone: timezone {zone:?} is not a time zone of {database} (did you mean {near:?}?)");
        tells(&job(&format!("timezone = {zone:?}")), &expected);
    }
    let expected =
        format!("4:12 bad-timezone: timezone \"x/y/z/0\" is not a time zone of {database} (write an IANA name");
    tells(&job("timezone = \"x/y/z/0\""), &expected);
}

#[test]
fn a_schedule_that_cannot_be_used_is_told_in_the_words_of_the_schedule() {
    for schedule in ["", "61 * * * *", "* * * *", "hello", "@reboot", "0 0 31 2 *", "0 * * * * * * *"] {
        let told = told(&format!("[jobs.a]\nschedule = {schedule:?}\ncommand = [\"true\"]"));
        assert_eq!(told.len(), 1, "{schedule}: {told:#?}");
        assert!(told[0].starts_with("2:12 bad-schedule: schedule: "), "{told:#?}");
    }
}

#[test]
fn a_command_names_a_program_and_knows_its_placeholders() {
    let with = |command: &str| format!("[jobs.a]\nschedule = \"@hourly\"\ncommand = {command}");
    for (command, expected) in [
        ("[]", "3:11 empty-command: command is empty (write command = ["),
        ("\"  \"", "3:11 empty-command: command is empty"),
        ("[\"\", \"x\"]", "3:11 empty-command: command is empty"),
        (
            "[\"x\", \"--hour={hour}\"]",
            "3:17 unknown-placeholder: command[1]: unknown placeholder {hour}; known are {slot}",
        ),
        (
            "[\"x\", \"${HOME}\"]",
            "3:17 unknown-placeholder: command[1]: unknown placeholder {HOME}; known are {slot}, {slot_start}, \
          {slot_end}, {scheduled_at}, {attempt}, {fence} and {job}; write {{ for a brace (variables are not replaced in commands",
        ),
        ("[\"x\", 5]", "3:17 wrong-type: command[1] must be a string, not a whole number (write \"5\")"),
        ("[\"x\\u0000\"]", "3:12 bad-text: command[0] has a NUL byte in it"),
        ("5", "3:11 wrong-type: command must be a list of strings, or a string for /bin/sh, not a whole number"),
        (
            "\"echo {slot}\"",
            "3:17 shell-placeholder: {slot} is not replaced in a shell command (use \"$CRONWARD_SLOT\"",
        ),
    ] {
        tells(&with(command), expected);
    }
    for command in ["\"echo ${slot} {a,b} {x} '{'\"", "[\"awk\", \"{{print}}\", \"{slot}\"]", "[\"x\", \"\"]"] {
        assert_eq!(told(&with(command)), Vec::<String>::new());
    }
}

#[test]
fn the_environment_of_a_command_has_only_names_that_can_be_set() {
    tells(&job("env = { \"A-B\" = \"x\" }"), "4:9 bad-env-name: env: \"A-B\" cannot name a variable");
    tells(&job("env = { 1A = \"x\" }"), "4:9 bad-env-name: env: \"1A\" cannot name a variable");
    tells(&job("env = { CRONWARD_SLOT = \"x\" }"), "4:9 bad-env-name: env: CRONWARD_SLOT is set by cronward itself");
    tells(&job("env = { A = \"x\\u0000\" }"), "4:13 bad-text: env.A has a NUL byte in it");
}

#[test]
fn accounts_and_paths_that_cannot_be_are_told() {
    tells(
        &job("cwd = \"~bob/data\""),
        "4:7 bad-path: cwd cannot begin with \"~bob\": ~ is the home of the job's user, and of no other (write ~/ or the whole path)",
    );
    tells(&job("user = \"a b\""), "4:8 bad-name: user cannot be \"a b\" (write the name or the number of an account)");
    tells(&job("group = \"-x\""), "4:9 bad-name: group cannot be \"-x\"");
    tells(&job("cwd = \"\""), "4:7 empty: cwd is empty (write something like \"/srv/app\", or leave it out)");
    tells(&job("success_codes = []"), "4:17 empty: success_codes is empty: no run could ever succeed");
    assert_eq!(config(&job("user = \"1000\"\ngroup = \"www-data\"")).jobs.len(), 1);
}

#[test]
fn errors_in_defaults_are_told_once_whatever_the_number_of_jobs() {
    let jobs = job("") + &job("").replace("jobs.a", "jobs.b");
    tells(&format!("[defaults]\nlease_ttl = \"x\"\n{jobs}"), "2:13 bad-duration: lease_ttl: \"x\" is no duration");
}

#[test]
fn a_timeout_of_zero_is_refused_with_the_word_for_no_limit() {
    for zero in ["0s", "0m 0s", "${NO_LIMIT:-0ms}"] {
        tells(
            &job(&format!("timeout = {zero:?}")),
            "4:11 out-of-range: timeout is zero: no run could ever end in time (write timeout = \"none\" for no limit)",
        );
    }
}

#[test]
fn a_word_or_variable_that_linux_passes_on_to_no_command_is_refused() {
    let long = "x".repeat(131_072);
    let command = |command: &str| format!("[jobs.a]\nschedule = \"0 * * * *\"\ncommand = {command}\n");
    for (text, name) in [
        (command(&format!("[\"echo\", \"{long}\"]")), "command[1] has 131072 bytes"),
        (command(&format!("\"{long}\"")), "command has 131072 bytes"),
        (job(&format!("env = {{ X = \"{}\" }}", &long[2..])), "env.X has 131072 bytes"),
    ] {
        let told = told(&text);
        assert_eq!(told.len(), 1, "{}", told.len());
        assert!(
            told[0].contains(&format!(" too-long: {name}: Linux starts no command with more than 131071")),
            "{}",
            told[0]
        );
    }
    assert_eq!(told(&command(&format!("[\"echo\", \"{}\"]", &long[1..]))), Vec::<String>::new());
}
