//! Which of a file's jobs are meant: all, none, or those with a tag.

use super::JobSpec;

/// Which jobs are meant.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum JobSelection {
    /// Every one.
    #[default]
    All,
    /// None.
    None,
    /// Those that have this tag.
    Tagged(String),
}

impl JobSelection {
    /// As it is written: `all`, `none`, or a tag.
    pub fn of(text: &str) -> Self {
        match text {
            "all" => Self::All,
            "none" => Self::None,
            tag => Self::Tagged(tag.to_owned()),
        }
    }

    /// Whether this job is meant.
    pub fn has(&self, job: &JobSpec) -> bool {
        match self {
            Self::All => true,
            Self::None => false,
            Self::Tagged(tag) => job.tags.contains(tag),
        }
    }
}
