//! Where messages go. Each sink makes of a letter what its receiver takes, and judges what that answers.

mod answer;
mod dingtalk;
mod email;
mod exec;
mod feishu;
mod healthchecks;
mod http;
mod secrets;
mod sink;
mod slack;
mod webhook;
mod wecom;

pub(crate) use answer::Receipt;
pub(super) use sink::{Sink, Ways};
