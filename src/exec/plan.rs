//! What the shim is told to start, and its form on the socket. Words only.
//!
//! The plan goes over the socket and not through arguments and environment, so that `ps` shows no secret of `env`, and
//! that an `LD_PRELOAD` for the command is none for the shim.

use std::ffi::{OsStr, OsString};
use std::os::unix::ffi::{OsStrExt, OsStringExt};

use crate::clock::Mono;
use crate::exec::refusal::Refusal;
use crate::job::KillMode;
use crate::slot::LeaseDeadline;

/// Everything about a command, with placeholders filled in.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Plan {
    /// The program and its arguments.
    pub(super) argv: Vec<OsString>,
    /// The working directory; empty for the daemon's.
    pub(super) cwd: OsString,
    /// The user; empty for the daemon's.
    pub(super) user: String,
    /// The group; empty for the user's.
    pub(super) group: String,
    /// By when it has to be over unless the lease is renewed; none where it may outlast its lease.
    pub(super) lease: Option<LeaseDeadline>,
    /// How much of what it starts is stopped with it.
    pub(super) kill_mode: KillMode,
    /// The whole environment.
    pub(super) env: Vec<(OsString, OsString)>,
}

impl Plan {
    /// The plan as bytes: the length of the rest in 8 bytes, then fields that each end with NUL, as the kernel takes them.
    /// Refused when a field holds a NUL itself or a name cannot be one.
    pub(super) fn encode(&self) -> Result<Vec<u8>, Refusal> {
        let mut bytes = vec![0; 8];
        put(&mut bytes, "number of arguments", OsStr::new(&self.argv.len().to_string()))?;
        for argument in &self.argv {
            put(&mut bytes, "an argument of the command", argument)?;
        }
        put(&mut bytes, "cwd", &self.cwd)?;
        put(&mut bytes, "user", OsStr::new(&self.user))?;
        put(&mut bytes, "group", OsStr::new(&self.group))?;
        put(&mut bytes, "lease", OsStr::new(&self.lease.map(write_lease).unwrap_or_default()))?;
        put(&mut bytes, "kill_mode", OsStr::new(kill_mode_word(self.kill_mode)))?;
        for (name, value) in &self.env {
            if name.is_empty() || name.as_bytes().contains(&b'=') {
                return Err(Refusal::cannot_run(format_args!("{name:?} cannot be the name of a variable in env")));
            }
            let entry = [name.as_os_str(), value].join(OsStr::new("="));
            put(&mut bytes, &format!("the variable {}", name.display()), &entry)?;
        }
        let length = (bytes.len() as u64 - 8).to_le_bytes();
        bytes.splice(..8, length);
        Ok(bytes)
    }

    /// Reads what [`Plan::encode`] wrote, without the length; none when it is not that.
    pub(super) fn decode(bytes: &[u8]) -> Option<Self> {
        let mut fields =
            bytes.strip_suffix(b"\0")?.split(|byte| *byte == 0).map(|field| OsString::from_vec(field.to_vec()));
        let count = fields.next()?.into_string().ok()?.parse().ok()?;
        let argv: Vec<_> = fields.by_ref().take(count).collect();
        let cwd = fields.next()?;
        let user = fields.next()?.into_string().ok()?;
        let group = fields.next()?.into_string().ok()?;
        let lease = read_lease(&fields.next()?.into_string().ok()?)?;
        let kill_mode = read_kill_mode(&fields.next()?.into_string().ok()?)?;
        let env = fields.map(split).collect::<Option<_>>()?;
        (argv.len() == count).then_some(Self { argv, cwd, user, group, lease, kill_mode, env })
    }
}

fn put(bytes: &mut Vec<u8>, what: &str, field: &OsStr) -> Result<(), Refusal> {
    if field.as_bytes().contains(&0) {
        return Err(Refusal::cannot_run(format_args!("{what} holds a NUL byte")));
    }
    bytes.extend_from_slice(field.as_bytes());
    bytes.push(0);
    Ok(())
}

const fn kill_mode_word(kill_mode: KillMode) -> &'static str {
    match kill_mode {
        KillMode::Group => "group",
        KillMode::Process => "process",
    }
}

fn read_kill_mode(word: &str) -> Option<KillMode> {
    [KillMode::Group, KillMode::Process].into_iter().find(|kill_mode| kill_mode_word(*kill_mode) == word)
}

fn write_lease(LeaseDeadline { stop_at, kill_at }: LeaseDeadline) -> String {
    format!("{} {}", stop_at.nanos(), kill_at.nanos())
}

/// None when it is no deadline, and in that none when there is none.
fn read_lease(text: &str) -> Option<Option<LeaseDeadline>> {
    if text.is_empty() {
        return Some(None);
    }
    let (stop_at, kill_at) = text.split_once(' ')?;
    let instant = |text: &str| Some(Mono::from_nanos(text.parse().ok()?));
    Some(Some(LeaseDeadline { stop_at: instant(stop_at)?, kill_at: instant(kill_at)? }))
}

fn split(entry: OsString) -> Option<(OsString, OsString)> {
    let entry = entry.into_vec();
    let at = entry.iter().position(|byte| *byte == b'=')?;
    let (name, value) = entry.split_at_checked(at)?;
    Some((OsString::from_vec(name.to_vec()), OsString::from_vec(value.get(1..)?.to_vec())))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn plan() -> Plan {
        Plan {
            argv: vec!["/bin/x".into(), "".into(), OsString::from_vec(vec![0xff, b'\n'])],
            cwd: "/tmp".into(),
            user: "nobody".to_owned(),
            group: String::new(),
            lease: Some(LeaseDeadline { stop_at: Mono::from_nanos(5), kill_at: Mono::from_nanos(6) }),
            kill_mode: KillMode::Process,
            env: vec![("A".into(), "".into()), ("B".into(), "a=b".into())],
        }
    }

    #[test]
    fn a_plan_reads_back_as_written() {
        for plan in [plan(), Plan::default(), Plan { env: Vec::new(), lease: None, ..plan() }] {
            let bytes = plan.encode().unwrap();
            let (length, rest) = bytes.split_at(8);
            assert_eq!(u64::from_le_bytes(length.try_into().unwrap()), rest.len() as u64);
            assert_eq!(Plan::decode(rest), Some(plan));
        }
    }

    #[test]
    fn a_plan_cut_anywhere_is_none_or_shorter_but_never_a_panic() {
        let bytes = plan().encode().unwrap();
        for length in 0..bytes.len() - 8 {
            assert_ne!(Plan::decode(&bytes[8..8 + length]), Some(plan()));
        }
        assert_eq!(Plan::decode(b"18446744073709551615\0a\0"), None);
    }

    #[test]
    fn a_nul_or_an_impossible_name_is_refused_by_what_holds_it() {
        let with_env = |name: &str, value: &str| Plan { env: vec![(name.into(), value.into())], ..plan() };
        for (plan, part) in [
            (Plan { argv: vec!["a\0b".into()], ..plan() }, "an argument of the command holds a NUL"),
            (Plan { cwd: "\0".into(), ..plan() }, "cwd holds a NUL"),
            (with_env("A", "\0secret"), "the variable A holds a NUL"),
            (with_env("", "x"), "\"\" cannot be the name"),
            (with_env("A=B", "x"), "\"A=B\" cannot be the name"),
        ] {
            let refusal = plan.encode().unwrap_err();
            assert!(refusal.code == 126 && refusal.message.contains(part), "{refusal:?}");
            assert!(!refusal.message.contains("secret"));
        }
    }
}
