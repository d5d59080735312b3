//! How long the slots of a job ran, as bars with the median, the 95th percentile and the limit. Arithmetic only.

use std::time::Duration;

use crate::web::pages::moment::Teller;
use crate::web::pages::runs::took;
use crate::web::pages::state::JudgedSlot;

/// A picture of 600 by 132.
pub(super) struct Chart {
    pub(super) title: String,
    pub(super) bars: Vec<Column>,
    pub(super) lines: Vec<Level>,
}

/// One slot.
pub(super) struct Column {
    pub(super) state: &'static str,
    /// No run had a duration.
    pub(super) hollow: bool,
    pub(super) x: u32,
    pub(super) y: u32,
    pub(super) width: u32,
    pub(super) height: u32,
    pub(super) title: String,
}

/// A level across.
pub(super) struct Level {
    pub(super) y: u32,
    pub(super) limit: bool,
    pub(super) title: String,
}

const WIDTH: u32 = 600;
const HEIGHT: u32 = 128;
/// Bars are no wider, however few there are.
const WIDEST: u32 = 24;

/// The median and the 95th percentile, by nearest rank.
pub(super) fn percentiles(mut seconds: Vec<f64>) -> Option<(f64, f64)> {
    seconds.sort_by(f64::total_cmp);
    let count = seconds.len();
    let rank = |percent: usize| seconds.get((count * percent).div_ceil(100).max(1) - 1).copied();
    Some((rank(50)?, rank(95)?))
}

/// Of slots, the newest first.
pub(super) fn of(
    slots: &[JudgedSlot],
    levels: Option<(f64, f64)>,
    timeout: Option<Duration>,
    tell: &Teller,
) -> Option<Chart> {
    let most = slots.iter().filter_map(|slot| took(&slot.view)).fold(0.0, f64::max);
    if slots.len() < 2 || most <= 0.0 {
        return None;
    }
    let step = (WIDTH / u32::try_from(slots.len()).unwrap_or(WIDTH).max(1)).clamp(2, WIDEST);
    let bars = slots.iter().rev().zip(0_u32..).map(|(slot, at)| column(slot, at * step, step, most, tell)).collect();
    let t = &tell.t.job;
    let level = |name: &str, seconds: f64, limit| Level {
        y: HEIGHT.saturating_sub(height(seconds, most)),
        limit,
        title: format!("{name} {}", tell.fine_span(seconds)),
    };
    let mut lines: Vec<Level> =
        levels.iter().flat_map(|(p50, p95)| [level("p50", *p50, false), level("p95", *p95, false)]).collect();
    let limit = timeout.map(|span| span.as_secs_f64()).filter(|seconds| *seconds <= most * 1.05);
    lines.extend(limit.map(|seconds| level(t.timeout, seconds, true)));
    Some(Chart { title: (t.chart)(slots.len()), bars, lines })
}

fn column(slot: &JudgedSlot, x: u32, step: u32, most: f64, tell: &Teller) -> Column {
    let (shown, slot) = (slot.shown(), &slot.view);
    let seconds = took(slot);
    let tall = seconds.map_or(8, |seconds| height(seconds, most).max(3));
    let told = seconds.map(|seconds| format!(", {}", tell.fine_span(seconds))).unwrap_or_default();
    Column {
        state: shown.key(),
        hollow: seconds.is_none(),
        x,
        y: HEIGHT.saturating_sub(tall),
        width: step.saturating_sub(1).max(1),
        height: tall,
        title: format!("{}: {}{told}", slot.slot, (tell.t.words.state)(shown)),
    }
}

#[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "within 0 and HEIGHT")]
fn height(seconds: f64, most: f64) -> u32 {
    (f64::from(HEIGHT) * (seconds / most).clamp(0.0, 1.0)) as u32
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn percentiles_are_values_that_there_were() {
        assert_eq!(percentiles(vec![]), None);
        assert_eq!(percentiles(vec![3.0]), Some((3.0, 3.0)));
        assert_eq!(percentiles((1..=100).rev().map(f64::from).collect()), Some((50.0, 95.0)));
    }
}
