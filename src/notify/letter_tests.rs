//! What people read, in both languages, and what programs get.

use std::time::Duration;

use super::*;
use crate::config::{Lang, SPREAD, SecretText, SinkTarget, WebForm};
use crate::job::Program;
use crate::slot::{Mark, Outcome, Slot, SlotKey, Token, Trigger};

fn job() -> JobName {
    JobName::new("billing").unwrap()
}

fn slot() -> Slot {
    Slot::parse("billing", "2026-11-21T14Z", "2026-11-21T15Z").unwrap()
}

fn now() -> DateTime<Utc> {
    "2026-11-21T14:05:00Z".parse().unwrap()
}

fn sender() -> Sender {
    Sender {
        namespace: Namespace::new("prod").unwrap(),
        node: NodeName::new("a").unwrap(),
        page: Some("https://cron.example/ops/".to_owned()),
    }
}

fn sink(lang: Lang) -> SinkConfig {
    SinkConfig {
        target: SinkTarget::Web { form: WebForm::Slack, url: SecretText::Here(String::new()), secret_file: None },
        lang,
        events: NoticeKind::USUAL.into(),
        remind_after: None,
        output: true,
        title: None,
        footer: None,
        spread: SPREAD,
    }
}

fn run(attempt: u32, node: &str) -> RunRecord {
    RunRecord {
        attempt,
        token: Token::from_bits(u128::from(attempt)),
        node: NodeName::new(node).unwrap(),
        trigger: Trigger::Schedule,
        claimed_at: now(),
        started_at: Some(now()),
        ended_at: Some(now()),
        ended_after: None,
        cpu_ms: None,
        duration_ms: Some(5),
        outcome: Some(Outcome::Failure),
        exit_code: Some(1),
        signal: None,
        message: None,
        output: None,
    }
}

fn item(kind: NoticeKind) -> LetterItem {
    let mut spec = JobSpec::new(job(), "0 * * * *", Program::Direct(vec!["true".to_owned()]));
    (spec.owner, spec.runbook) = (Some("billing team".to_owned()), Some("https://wiki.example/billing".to_owned()));
    spec.alert_after = Some(Duration::from_secs(3 * 3_600));
    let notice = Notice::of_slot(kind, &job(), slot().key());
    let mut record = SlotRecord::untouched(slot());
    (record.attempts, record.runs) = (3, vec![run(1, "a"), run(2, "b"), run(3, "c")]);
    let text = "one\ntwo\nthree\nfour\n\x1b[2Jfive\n\nsix\n".to_owned();
    let output = Some(OutputTail { text, dropped_bytes: 0, loss: None });
    let known = Particulars { spec: Some(Arc::new(spec)), record: Some(record), output, latest: None };
    LetterItem { key: notice.key("ops").unwrap(), notice, known }
}

fn letter(kind: NoticeKind, lang: Lang) -> Letter {
    Letter::of(&item(kind), &sender(), &sink(lang), now())
}

#[test]
fn the_sentence_comes_first_then_the_output_whose_it_is_and_what_mends_it() {
    let text = letter(NoticeKind::Failed, Lang::En).text();
    assert_eq!(
        text,
        "billing@2026-11-21T14Z failed: 3 of 3 attempts on a, b, c; exit 1\n\
         Last lines of the output:\n  two\n  three\n  four\n  \\x1b[2Jfive\n  six\n\
         Owner: billing team\nRunbook: https://wiki.example/billing\n\
         Page: https://cron.example/ops/jobs/billing/2026-11-21T14Z\n\
         To run it again: cronward reset billing@2026-11-21T14Z; from 2026-11-21T15:00:00Z on, then also: cronward trigger \
         billing@2026-11-21T14Z --past"
    );
}

#[test]
fn an_attempt_that_took_too_long_is_said_to_have_timed_out_and_not_to_have_been_killed() {
    let mut item = item(NoticeKind::Failed);
    let mut record = item.known.record.take().unwrap();
    let last = record.runs.last_mut().unwrap();
    (last.outcome, last.exit_code, last.signal) = (Some(Outcome::Timeout), None, Some(15));
    item.known.record = Some(record);
    Arc::make_mut(item.known.spec.as_mut().unwrap()).policy.timeout = None;
    let title = |item: &LetterItem, lang| Letter::of(item, &sender(), &sink(lang), now()).title;
    assert!(title(&item, Lang::En).ends_with("; ended as timeout"), "{}", title(&item, Lang::En));
    let spec = Arc::make_mut(item.known.spec.as_mut().unwrap());
    spec.policy.timeout = Some(Duration::from_secs(90));
    assert!(title(&item, Lang::En).ends_with("; timeout after 1m 30s"), "{}", title(&item, Lang::En));
    assert!(title(&item, Lang::Zh).contains("1m 30s"), "{}", title(&item, Lang::Zh));
}

#[test]
fn a_message_that_comes_late_says_that_the_job_has_succeeded_since_and_turns_no_check_back() {
    use crate::slot::{LastEnd, LastSuccess};
    let mut item = item(NoticeKind::Failed);
    let ago = |seconds| now() - chrono::TimeDelta::seconds(seconds);
    // The last attempt ended now; by hand an old slot is run after later ones.
    for (key, done, since, outdated) in [
        ("2026-11-21T13Z", ago(-60), false, false),
        ("2026-11-21T15Z", ago(-60), true, true),
        ("2026-11-21T15Z", ago(60), false, true),
    ] {
        let success = LastSuccess { slot: key.parse().unwrap(), at: done };
        item.known.latest = Some(JobLatest { success: Some(success), ..JobLatest::default() });
        let letter = Letter::of(&item, &sender(), &sink(Lang::En), now());
        let told = letter.lines[0].starts_with("a later slot is done by now: 2026-11-21T15Z, at ");
        assert_eq!((told, letter.ping.unwrap().outdated), (since, outdated), "{:?}", letter.lines);
    }
    // An attempt of a later slot that is tried again says nothing yet.
    let end = LastEnd { slot: "2026-11-21T15Z".parse().unwrap(), at: now(), outcome: Outcome::Failure };
    item.known.latest = Some(JobLatest { end: Some(end), ..JobLatest::default() });
    assert!(!Letter::of(&item, &sender(), &sink(Lang::En), now()).ping.unwrap().outdated);
}

#[test]
fn a_digest_has_an_identity_of_its_own_which_is_that_of_what_it_tells() {
    let items: Vec<LetterItem> = [NoticeKind::Failed, NoticeKind::Missed, NoticeKind::Late].map(item).into();
    let id = |items: &[LetterItem]| Letter::digest(items, &sender(), &sink(Lang::En), now()).id;
    let all = id(&items);
    assert_ne!(all, id(&items[..2]));
    assert!(items.iter().all(|item| message_id(&sender().namespace, &item.key) != all));
    let turned: Vec<LetterItem> = items.iter().rev().cloned().collect();
    assert_eq!(id(&turned), all, "each node tells the same");
}

#[test]
fn programs_are_told_why_somebody_paused_a_job_or_a_file_was_refused() {
    let mut item = item(NoticeKind::Paused);
    item.notice.words = Some("ana@ops-1: upgrade".to_owned());
    let letter = Letter::of(&item, &sender(), &sink(Lang::En), now());
    assert_eq!(letter.json["data"]["reason"], json!("ana@ops-1: upgrade"));
}

#[test]
fn it_is_said_in_chinese_too() {
    let letter = letter(NoticeKind::Failed, Lang::Zh);
    assert_eq!(letter.title, "billing@2026-11-21T14Z 失败\u{ff1a}在 a, b, c 上用完 3/3 次尝试\u{ff1b}退出码 1");
    assert!(letter.lines.contains(&"负责人\u{ff1a}billing team".to_owned()), "{:?}", letter.lines);
}

#[test]
fn the_node_of_the_other_run_is_told_in_the_readers_language() {
    for (lang, told) in [(Lang::En, "the other run was on node c"), (Lang::Zh, "另一次运行在节点 c 上")] {
        let mut item = item(NoticeKind::Overlap);
        item.notice.beside = Some(NodeName::new("c").unwrap());
        let letter = Letter::of(&item, &sender(), &sink(lang), now());
        assert_eq!(letter.lines.first().map(String::as_str), Some(told));
    }
}

#[test]
fn every_kind_has_a_sentence_in_which_nothing_is_left_open() {
    for lang in [Lang::En, Lang::Zh] {
        for (word, kind) in NoticeKind::ALL {
            let mut item = item(kind);
            (item.notice.number, item.notice.stamp) = (Some(2), Some(now()));
            item.notice.about = Some(NodeName::new("b").unwrap());
            let title = Letter::of(&item, &sender(), &sink(lang), now()).title;
            assert!(
                !title.contains(['{', '}', '?']) && !title.contains("  ") && !title.ends_with(' '),
                "{word}: {title}"
            );
        }
    }
}

#[test]
fn of_a_store_that_does_not_answer_the_failure_is_told_all_the_same() {
    let mut item = item(NoticeKind::Failed);
    (item.known.record, item.known.output) = (None, None);
    let letter = Letter::of(&item, &sender(), &sink(Lang::En), now());
    assert_eq!(letter.title, "billing@2026-11-21T14Z failed: no attempt is left");
    assert!(letter.lines.last().unwrap().contains("; from 2026-11-21T15:00:00Z on, "), "{:?}", letter.lines);
}

#[test]
fn without_output_nothing_of_it_is_in_the_text_nor_in_the_json() {
    let quiet = SinkConfig { output: false, ..sink(Lang::En) };
    let letter = Letter::of(&item(NoticeKind::Failed), &sender(), &quiet, now());
    assert!(!letter.text().contains("three") && !letter.json.to_string().contains("three"), "{letter:?}");
    assert!(letter.ping.unwrap().output.is_empty());
}

#[test]
fn a_slot_that_was_missed_after_attempts_says_that_they_failed() {
    let mut item = item(NoticeKind::Missed);
    let title = |item: &LetterItem, lang| Letter::of(item, &sender(), &sink(lang), now()).title;
    let record = item.known.record.as_mut().unwrap();
    (record.attempts, record.runs) = (2, vec![run(1, "a"), run(2, "b")]);
    assert_eq!(
        title(&item, Lang::En),
        "billing@2026-11-21T14Z was missed: attempt 2 of 3 did not succeed (exit 1), no retry before the slot ended"
    );
    assert_eq!(
        title(&item, Lang::Zh),
        "billing@2026-11-21T14Z 错过：共 3 次尝试，第 2 次失败（退出码 1），时间槽结束前没有重试"
    );
    let plain = "billing@2026-11-21T14Z was missed: the slot ended without a success";
    // What was given back was no try; and how many there may be stands in the file.
    item.known.record.as_mut().unwrap().forgiven = 2;
    assert_eq!(title(&item, Lang::En), plain);
    item.known.record.as_mut().unwrap().forgiven = 0;
    item.known.spec = None;
    assert_eq!(title(&item, Lang::En), plain);
    (item.known.record, item.known.spec) = (None, None);
    assert_eq!(title(&item, Lang::En), plain);
}

#[test]
fn slots_that_were_missed_in_a_row_are_one_sentence() {
    let mut item = item(NoticeKind::Missed);
    (item.notice.slots, item.notice.first) = (5, "2026-11-21T10Z".parse::<SlotKey>().ok());
    let letter = Letter::of(&item, &sender(), &sink(Lang::En), now());
    assert!(
        letter.title.starts_with("billing: 5 slots from 2026-11-21T10Z to 2026-11-21T14Z were missed"),
        "{}",
        letter.title
    );
}

#[test]
fn a_digest_says_how_many_of_what_and_names_twenty() {
    let items: Vec<LetterItem> =
        std::iter::repeat_n(item(NoticeKind::Failed), 24).chain([item(NoticeKind::Missed)]).collect();
    let named =
        SinkConfig { title: Some("[prod]".to_owned()), footer: Some("on call: ana".to_owned()), ..sink(Lang::En) };
    let letter = Letter::digest(&items, &sender(), &named, now());
    assert_eq!(letter.title, "[prod] 25 events: 24 failed, 1 missed");
    assert_eq!((letter.lines.len(), &*letter.lines[20]), (23, "and 5 more"));
    assert_eq!(letter.lines.last().unwrap(), "on call: ana");
    assert_eq!(letter.json["data"]["events"].as_array().unwrap().len(), 25);
}

#[test]
fn programs_get_the_event_the_slot_and_the_links_and_no_token_of_a_lease() {
    let mut item = item(NoticeKind::Overlap);
    let record = item.known.record.as_mut().unwrap();
    let by = crate::slot::Holder { node: NodeName::new("c").unwrap(), attempt: 3 };
    record.mark = Mark::Leased { by, token: Token::from_bits(0xfeed), remaining: Duration::from_secs(9) };
    let json = Letter::of(&item, &sender(), &sink(Lang::En), now()).json;
    assert_eq!((json["type"].as_str(), json["timestamp"].as_str()), (Some("overlap"), Some("2026-11-21T14:05:00Z")));
    let data = &json["data"];
    assert_eq!((data["job"].as_str(), data["slot"].as_str()), (Some("billing"), Some("2026-11-21T14Z")));
    assert_eq!(data["url"], "https://cron.example/ops/jobs/billing/2026-11-21T14Z");
    assert_eq!((&data["state"]["state"], &data["state"]["lease"]["node"]), (&json!("running"), &json!("c")));
    assert!(!json.to_string().contains("feed"), "{json}");
}

#[test]
fn a_text_is_cut_between_characters() {
    assert_eq!(shortened("错错错", 9), "错错错");
    assert_eq!(shortened("错错错错", 9), "错错…");
    assert_eq!(shortened("错错", 3), "…");
}
