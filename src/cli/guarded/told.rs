//! What a guarded command is told besides its run, and what of all that is handed on by a guard within it.

/// How deep the holds of one lease are nested; the outermost has none.
pub(super) const HOLDS: &str = "CRONWARD_HOLDS";

/// The key of a foreign program that the outer run holds with its lease.
pub(super) const HOLDS_KEY: &str = "CRONWARD_HOLDS_KEY";

/// Whose the locks are that are held: who is told it takes them again.
pub(super) const OWNER: &str = "CRONWARD_LOCK_OWNER";

/// The names of the locks that are held, with spaces between.
pub(super) const NAMES: &str = "CRONWARD_LOCKS";

/// The owners of what is held around this process, with spaces between. A run has an owner of its own, and what is held around it stays
/// held: whoever asks for that would wait for itself.
pub(super) const AROUND: &str = "CRONWARD_LOCK_OUTER";

/// What a command is told of the locks that it runs under: their names, with spaces between; the one number of all of them; whose they
/// are.
pub(super) const OF_LOCKS: [&str; 3] = [NAMES, "CRONWARD_LOCK_FENCE", OWNER];

/// The variables of these names that this process was told, for what it starts: of the others that begin with `CRONWARD_` a command sees
/// none.
pub(super) fn handed_down(names: impl IntoIterator<Item = &'static str>) -> impl Iterator<Item = (String, String)> {
    names.into_iter().filter_map(|name| Some((name.to_owned(), std::env::var(name).ok()?)))
}
