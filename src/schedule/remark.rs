//! What an expression says and may not mean: told by `check`. Looks at the text of the fields, never at ticks.

use super::syntax::{FIELDS, Field};
use crate::schedule::Schedule;

/// Something that may not be meant.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Remark {
    /// A stable word, like `long-step`.
    pub code: &'static str,
    /// What is so, a lowercase fragment.
    pub message: String,
    /// What to write instead.
    pub hint: String,
}

impl Schedule {
    /// What may not be meant: a step that is longer than its range, and two days of which Debian's cron wants both.
    pub fn remarks(&self) -> Vec<Remark> {
        let fields = self.compiled().fields();
        let steps = FIELDS.iter().zip(fields).filter_map(|(field, text)| long_step(field, text));
        // Six fields are no cron's.
        let of_cron = self.text().split_ascii_whitespace().count() == 5;
        steps.chain(of_cron.then(|| star_day(fields)).flatten()).collect()
    }
}

/// The first item of a field whose step leaves nothing but its first value.
fn long_step(field: &Field, text: &str) -> Option<Remark> {
    let list = text.strip_prefix('+').unwrap_or(text);
    list.split(',').find_map(|item| {
        let (range, step) = item.split_once('/')?;
        // The second Sunday is no further day.
        let all = (field.least, field.most.min(if field.name == "day-of-week" { 6 } else { field.most }));
        let (from, to) = match range.split_once('-') {
            Some((from, to)) => (field.number(from)?, field.number(to)?),
            None => all,
        };
        if step.parse::<u32>().ok()? <= to.checked_sub(from)? || from == to && step == "1" {
            return None;
        }
        let name = field.name;
        Some(Remark {
            code: "long-step",
            message: format!(
                "{name} {item:?} means {name} {from} alone: the step is longer than the range {from}-{to}"
            ),
            hint: format!("write {from}, or a step of at most {}", to - from),
        })
    })
}

/// Two restricted days of which one begins with a star: a star to Debian's cron, which then wants both days to fit.
fn star_day([_, _, _, day, _, weekday]: [&str; 6]) -> Option<Remark> {
    let is_any = |text: &str| matches!(text, "*" | "?");
    let culprit = [day, weekday].into_iter().find(|text| text.starts_with('*'))?;
    if is_any(day) || is_any(weekday) || weekday.starts_with('+') {
        return None;
    }
    let all = if culprit == day { "1-31" } else { "0-6" };
    let range = culprit.replacen('*', all, 1);
    Some(Remark {
        code: "star-day",
        message: format!(
            "day-of-month {day} and day-of-week {weekday}: cronward runs the job when either day fits; Debian's cron runs it \
             only when both fit, because {culprit} begins with *"
        ),
        hint: format!("write +{weekday} if both must fit, or {range} instead of {culprit} if either is enough"),
    })
}
