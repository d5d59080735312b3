//! A schedule in words, in Simplified Chinese. croner puts the phrases together; what it puts between them is English, and is replaced.

use croner::describe::Language;

use crate::schedule::Schedule;

/// The schedule in words.
pub(super) fn words(schedule: &Schedule) -> String {
    let told = schedule.describe_in(Chinese);
    let mut parts = told.trim_end_matches('.').split(", ");
    let mut words = parts.next().unwrap_or_default().to_owned();
    for part in parts {
        // Numbers, weekdays and months are a list; no other phrase begins like that.
        words.push_str(match part.chars().next() {
            Some('和') => " ",
            Some(c) if c.is_ascii_digit() || c == '周' => "、",
            // A day of the month that is no number.
            _ if part.starts_with("每月") || part.starts_with("最接近") => "、",
            _ => "，",
        });
        words.push_str(part);
    }
    closed(&words).replace(" 或 ", "或")
}

/// Beside the word for "and" stands a space where a number does, and else none.
fn closed(words: &str) -> String {
    let mut parts = words.split(" 和 ");
    let mut closed = parts.next().unwrap_or_default().to_owned();
    for part in parts {
        let space = |is_number: bool| if is_number { " " } else { "" };
        let before = space(closed.ends_with(|c: char| c.is_ascii_digit()));
        let after = space(part.starts_with(|c: char| c.is_ascii_digit()));
        closed.push_str(&format!("{before}和{after}{part}"));
    }
    closed
}

struct Chinese;

/// After a word, with a space where it is a number.
fn apart(word: &str, phrase: &str) -> String {
    let space = if phrase.starts_with(|c: char| c.is_ascii_digit()) { " " } else { "" };
    format!("{word}{space}{phrase}")
}

impl Language for Chinese {
    fn every_minute(&self) -> &'static str {
        "每分钟"
    }

    fn every_second_phrase(&self) -> &'static str {
        "每秒"
    }

    fn every_x_minutes(&self, step: u16) -> String {
        format!("每 {step} 分钟")
    }

    fn every_x_seconds(&self, step: u16) -> String {
        format!("每 {step} 秒")
    }

    fn every_x_hours(&self, step: u16) -> String {
        format!("每 {step} 小时")
    }

    fn every_minute_of_every_x_hours(&self, step: u16) -> String {
        format!("每 {step} 小时中第一个小时内每分钟")
    }

    fn at_time(&self, time: &str) -> String {
        time.to_owned()
    }

    fn at_time_and_every_x_seconds(&self, time: &str, step: u16) -> String {
        format!("{time} 这一分钟内每 {step} 秒")
    }

    fn at_time_at_second(&self, time: &str, second: &str) -> String {
        format!("{time} 的第 {second} 秒")
    }

    fn at_phrase(&self, phrase: &str) -> String {
        phrase.to_owned()
    }

    fn on_phrase(&self, phrase: &str) -> String {
        apart("逢", phrase)
    }

    fn in_phrase(&self, phrase: &str) -> String {
        apart("逢", phrase)
    }

    fn second_phrase(&self, seconds: &str) -> String {
        format!("第 {seconds} 秒")
    }

    fn minute_phrase(&self, minutes: &str) -> String {
        format!("第 {minutes} 分")
    }

    fn minute_past_every_hour_phrase(&self, minutes: &str) -> String {
        format!("每小时{minutes}")
    }

    fn hour_phrase(&self, hours: &str) -> String {
        format!("逢 {hours} 时")
    }

    fn year_phrase(&self, years: &str) -> String {
        format!("{years} 年")
    }

    fn day_phrase(&self, days: &str) -> String {
        format!("{days} 日")
    }

    fn the_last_day_of_the_month(&self) -> &'static str {
        "每月最后一天"
    }

    fn the_weekday_nearest_day(&self, day: &str) -> String {
        format!("最接近 {day} 日的工作日")
    }

    fn the_last_weekday_of_the_month(&self, day: &str) -> String {
        format!("每月最后一个{day}")
    }

    fn the_nth_weekday_of_the_month(&self, n: u8, day: &str) -> String {
        format!("每月第 {n} 个{day}")
    }

    fn dom_and_dow_if_also(&self, weekday: &str) -> String {
        format!("（且须为{weekday}）")
    }

    fn dom_and_dow_if_also_one_of(&self, weekdays: &str) -> String {
        format!("（且须为其中之一：{weekdays}）")
    }

    fn list_conjunction_and(&self) -> &'static str {
        "和"
    }

    fn list_conjunction_or(&self) -> &'static str {
        "或"
    }

    fn list_conjunction_and_comma(&self) -> &'static str {
        "和"
    }

    fn day_of_week_names(&self) -> [&'static str; 7] {
        ["周日", "周一", "周二", "周三", "周四", "周五", "周六"]
    }

    fn month_names(&self) -> [&'static str; 12] {
        ["1 月", "2 月", "3 月", "4 月", "5 月", "6 月", "7 月", "8 月", "9 月", "10 月", "11 月", "12 月"]
    }

    fn time_of_day(&self, hour: u16, minute: u16, second: Option<u16>) -> String {
        let second = second.map(|second| format!(":{second:02}")).unwrap_or_default();
        format!("{hour:02}:{minute:02}{second}")
    }

    fn every_past_phrase(&self, every: &str, hours: &str) -> String {
        // Of each so many hours it is the first.
        if hours.starts_with('每') {
            format!("{hours}中第一个小时内{every}")
        } else {
            format!("{hours}内{every}")
        }
    }

    fn past_hour_phrase(&self, hours: &str) -> String {
        format!("{hours} 时")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_schedule_is_told_in_chinese_without_a_word_or_a_comma_of_english() {
        for (expression, told) in [
            ("* * * * *", "每分钟"),
            ("*/15 * * * *", "每 15 分钟"),
            ("0 * * * *", "每小时第 0 分"),
            ("5,20,50 * * * *", "每小时第 5、20 和 50 分"),
            ("0 14 * * *", "14:00"),
            ("0 9-17 * * 1-5", "第 0 分，逢 9-17 时，逢周一、周二、周三、周四和周五"),
            ("* 0,12 * * *", "每 12 小时中第一个小时内每分钟"),
            ("* 1,5 * * *", "1 和 5 时内每分钟"),
            ("0 */2 * * *", "第 0 分，每 2 小时"),
            ("30 2 1,15 3,9 *", "02:30，逢 1 和 15 日，逢 3 月和 9 月"),
            ("0 3 L * *", "03:00，逢每月最后一天"),
            ("0 3 * * 5#2", "03:00，逢每月第 2 个周五"),
            ("0 3 * * 1#1,1#3", "03:00，逢每月第 1 个周一和每月第 3 个周一"),
            ("0 3 1,L * *", "03:00，逢 1 日和每月最后一天"),
            ("*/20 0 14 * * *", "14:00 这一分钟内每 20 秒"),
            ("0 3 1 * 1", "03:00，逢 1 日或周一"),
            ("*/10 * * * * *", "每 10 秒"),
        ] {
            let schedule = Schedule::parse(expression, crate::zone::Zone::UTC).unwrap();
            assert_eq!(words(&schedule), told, "{expression}: {}", schedule.describe());
        }
    }
}
