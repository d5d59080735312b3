//! `cronward completions SHELL`: scripts for bash, zsh and fish. Words of the command line are clap's; names of jobs are
//! asked for anew at each tab: the script calls `cronward completions --names -- WORDS…`, which reads the file of jobs and
//! meets no store.

mod position;
mod script;

pub(crate) use script::{Args, completions};
