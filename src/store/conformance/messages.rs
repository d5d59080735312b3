//! Cases: messages are told once. Whoever asks first sends; who dies or fails is followed by the next; what was told stays so. A claim
//! whose lease is zero has lapsed at once, and a wait of zero is over: nothing here lets time pass.

use std::time::Duration;

use futures_util::future::join_all;

use crate::message::{Delivery, DeliveryReply, MessageKey, Telling, Topic, UntoldMessage, UntoldStage};
use crate::slot::Token;
use crate::store::conformance::bench::{LEASE, WAIT, case, is_about, is_recent, job_name, node_name};
use crate::store::conformance::{Bench, Case, CaseOutcome, Failure};
use crate::store::layer::ChaosFault;
use crate::store::{Applied, ErrorKind, Op, Store};

pub(super) const CASES: &[Case] = &[
    case!("messages", a_message_is_of_the_first_who_asks),
    case!("messages", of_many_who_ask_at_the_same_time_one_sends),
    case!("messages", a_claim_that_has_lapsed_passes_to_the_next),
    case!("messages", the_same_token_is_the_same_claim),
    case!("messages", what_was_told_stays_told),
    case!("messages", a_try_that_failed_is_not_repeated_before_its_time),
    case!("messages", what_was_given_up_is_sent_by_nobody),
    case!("messages", a_late_sender_fails_for_nobody_else_and_has_told_it_all_the_same),
    case!("messages", a_lost_answer_changes_nothing),
    case!("messages", what_is_not_told_is_listed_topic_by_topic),
    case!("messages", messages_of_one_topic_at_the_same_time_lose_nothing),
    case!("messages", a_message_is_kept_for_the_retention),
    case!("messages", messages_stay_in_their_namespace, I9),
    case!("messages", words_come_back_as_they_went_in),
    case!("messages", what_cronward_did_not_write_is_refused_and_left, I8),
];

/// A message about `job`.
fn about(job: &str, subject: &str) -> Result<MessageKey, Failure> {
    MessageKey::new(job_name(job)?, subject, "ops").map_err(|error| Failure::from(error.to_string()))
}

/// A fresh claim.
async fn tell(bench: &Bench, key: &MessageKey, node: &str, lease: Duration) -> Result<(Token, Telling), Failure> {
    let token = bench.token();
    Ok((token, bench.store.tell(key, &node_name(node)?, token, lease).await?))
}

/// A fresh claim, which must be granted as that try.
async fn granted(bench: &Bench, key: &MessageKey, node: &str, lease: Duration, nth: u32) -> Result<Token, Failure> {
    let (token, telling) = tell(bench, key, node, lease).await?;
    let (tries, first) = take!(telling, Telling::Yours { tries, first } => (tries, first));
    ensure_eq!(tries, nth);
    ensure!(is_recent(bench, first), "first claimed at {first}");
    Ok(token)
}

fn again(after: Duration) -> Delivery {
    Delivery::Again { after, error: "answered 500".to_owned() }
}

async fn untold(store: &dyn Store, job: &str) -> Result<Vec<UntoldMessage>, Failure> {
    Ok(store.untold(&[job_name(job)?.into()]).await?.1)
}

/// A store that keeps none says so to whoever asks; then there is nothing else to look at.
async fn are_kept(bench: &Bench) -> Result<bool, Failure> {
    if bench.store.capability().messages {
        return Ok(true);
    }
    let token = bench.token();
    let key = about("job", "a failed")?;
    let errors = [
        bench.store.tell(&key, &node_name("a")?, token, LEASE).await.err(),
        bench.store.told(&key, token, &Delivery::Delivered).await.err(),
        bench.store.untold(&[Topic::Cluster]).await.err(),
    ];
    for error in errors {
        let error = take!(error, Some(error) => error);
        ensure_eq!((error.kind, error.applied), (ErrorKind::Unsupported, Applied::No));
    }
    Ok(false)
}

async fn a_message_is_of_the_first_who_asks(bench: &Bench) -> CaseOutcome {
    if !are_kept(bench).await? {
        return Ok(());
    }
    let key = about("job", "a failed")?;
    granted(bench, &key, "a", LEASE, 1).await?;
    let answer = bench.another().await?.tell(&key, &node_name("b")?, bench.token(), LEASE).await?;
    let (by, remaining) = take!(answer, Telling::Theirs { by, remaining } => (by, remaining));
    ensure_eq!(by, node_name("a")?);
    ensure!(is_about(remaining, LEASE), "{remaining:?}");
    let to_another = MessageKey::new(job_name("job")?, "a failed", "mail");
    let to_another = to_another.map_err(|error| Failure::from(error.to_string()))?;
    for other in [about("job", "b failed")?, about("other", "a failed")?, to_another] {
        granted(bench, &other, "b", LEASE, 1).await?;
    }
    Ok(())
}

async fn of_many_who_ask_at_the_same_time_one_sends(bench: &Bench) -> CaseOutcome {
    if !are_kept(bench).await? {
        return Ok(());
    }
    let key = about("job", "a failed")?;
    for round in 0..3_u32 {
        let mut claimers = Vec::new();
        for index in 0..8 {
            claimers.push((bench.another().await?, key.clone(), node_name(&format!("n{index}"))?, bench.token()));
        }
        let claims = claimers.into_iter().map(|(store, key, node, token)| {
            tokio::spawn(async move { store.tell(&key, &node, token, LEASE).await.map(|telling| (token, telling)) })
        });
        let mut sender = None;
        for claim in join_all(claims).await {
            let (token, telling) = claim.map_err(|error| Failure::from(error.to_string()))??;
            match telling {
                Telling::Yours { tries, .. } => {
                    ensure_eq!((sender, tries), (None, round + 1), "one sends");
                    sender = Some(token);
                }
                telling => ensure_is!(telling, Telling::Theirs { .. }),
            }
        }
        let sender = take!(sender, Some(token) => token);
        ensure_eq!(bench.store.told(&key, sender, &again(Duration::ZERO)).await?, DeliveryReply::Recorded);
    }
    Ok(())
}

async fn a_claim_that_has_lapsed_passes_to_the_next(bench: &Bench) -> CaseOutcome {
    if !are_kept(bench).await? {
        return Ok(());
    }
    let key = about("job", "a failed")?;
    granted(bench, &key, "a", Duration::ZERO, 1).await?;
    granted(bench, &key, "b", Duration::ZERO, 2).await?;
    granted(bench, &key, "c", LEASE, 3).await?;
    ensure_is!(tell(bench, &key, "a", LEASE).await?.1, Telling::Theirs { .. });
    Ok(())
}

async fn the_same_token_is_the_same_claim(bench: &Bench) -> CaseOutcome {
    if !are_kept(bench).await? {
        return Ok(());
    }
    let (key, node, token) = (about("job", "a failed")?, node_name("a")?, bench.token());
    let first = bench.store.tell(&key, &node, token, Duration::ZERO).await?;
    ensure_is!(first, Telling::Yours { tries: 1, .. });
    ensure_eq!(bench.store.tell(&key, &node, token, LEASE).await?, first, "also once it has lapsed");
    ensure_is!(tell(bench, &key, "b", LEASE).await?.1, Telling::Theirs { .. });
    ensure_eq!(bench.store.tell(&key, &node, token, Duration::ZERO).await?, first);
    let remaining = take!(tell(bench, &key, "b", LEASE).await?.1, Telling::Theirs { remaining, .. } => remaining);
    ensure!(is_about(remaining, LEASE), "it is never made shorter: {remaining:?}");
    Ok(())
}

async fn what_was_told_stays_told(bench: &Bench) -> CaseOutcome {
    if !are_kept(bench).await? {
        return Ok(());
    }
    let key = about("job", "a failed")?;
    let token = granted(bench, &key, "a", LEASE, 1).await?;
    ensure_eq!(bench.store.told(&key, token, &Delivery::Delivered).await?, DeliveryReply::Recorded);
    let told = take!(tell(bench, &key, "b", LEASE).await?.1, Telling::Told { at } => at);
    ensure!(is_recent(bench, told), "told at {told}");
    bench.after(told).await?;
    ensure_eq!(bench.store.told(&key, token, &Delivery::Delivered).await?, DeliveryReply::Recorded);
    ensure_eq!(bench.store.told(&key, token, &again(LEASE)).await?, DeliveryReply::Recorded, "a late copy");
    ensure_eq!(bench.store.told(&key, bench.token(), &again(LEASE)).await?, DeliveryReply::Overtaken);
    ensure_eq!(bench.store.tell(&key, &node_name("a")?, token, LEASE).await?, Telling::Told { at: told });
    ensure_eq!(untold(&*bench.store, "job").await?, Vec::new());
    Ok(())
}

async fn a_try_that_failed_is_not_repeated_before_its_time(bench: &Bench) -> CaseOutcome {
    if !are_kept(bench).await? {
        return Ok(());
    }
    let key = about("job", "a failed")?;
    let first = granted(bench, &key, "a", LEASE, 1).await?;
    ensure_eq!(bench.store.told(&key, first, &again(Duration::ZERO)).await?, DeliveryReply::Recorded);
    let spent = bench.store.tell(&key, &node_name("a")?, first, LEASE).await?;
    ensure_eq!(spent, Telling::Later { remaining: Duration::ZERO }, "its token has had its try");
    let second = granted(bench, &key, "b", LEASE, 2).await?;
    ensure_eq!(bench.store.told(&key, second, &again(WAIT)).await?, DeliveryReply::Recorded);
    for token in [bench.token(), second] {
        let answer = bench.store.tell(&key, &node_name("c")?, token, LEASE).await?;
        let remaining = take!(answer, Telling::Later { remaining } => remaining);
        ensure!(is_about(remaining, WAIT), "{remaining:?}");
    }
    let listed = untold(&*bench.store, "job").await?;
    let message = take!(listed.as_slice(), [message] => message.clone());
    ensure_eq!((message.tries, message.error.as_deref()), (2, Some("answered 500")));
    let remaining = take!(message.stage, UntoldStage::Waiting { remaining } => remaining);
    ensure!(is_about(remaining, WAIT), "{remaining:?}");
    Ok(())
}

async fn what_was_given_up_is_sent_by_nobody(bench: &Bench) -> CaseOutcome {
    if !are_kept(bench).await? {
        return Ok(());
    }
    let key = about("job", "a failed")?;
    let token = granted(bench, &key, "a", LEASE, 1).await?;
    let gave_up = Delivery::GaveUp { error: "answered 404".to_owned() };
    ensure_eq!(bench.store.told(&key, token, &gave_up).await?, DeliveryReply::Recorded);
    ensure_eq!(bench.store.told(&key, token, &gave_up).await?, DeliveryReply::Recorded);
    let at = take!(tell(bench, &key, "b", LEASE).await?.1, Telling::GivenUp { at } => at);
    ensure!(is_recent(bench, at), "given up at {at}");
    let listed = untold(&*bench.another().await?, "job").await?;
    let message = take!(listed.as_slice(), [message] => message.clone());
    ensure_eq!((message.stage, message.error.as_deref()), (UntoldStage::GivenUp, Some("answered 404")));
    Ok(())
}

async fn a_late_sender_fails_for_nobody_else_and_has_told_it_all_the_same(bench: &Bench) -> CaseOutcome {
    if !are_kept(bench).await? {
        return Ok(());
    }
    let key = about("job", "a failed")?;
    let late = granted(bench, &key, "a", Duration::ZERO, 1).await?;
    let next = granted(bench, &key, "b", LEASE, 2).await?;
    ensure_eq!(bench.store.told(&key, late, &again(Duration::ZERO)).await?, DeliveryReply::Overtaken);
    ensure_is!(tell(bench, &key, "c", LEASE).await?.1, Telling::Theirs { .. });
    ensure_eq!(bench.store.told(&key, late, &Delivery::Delivered).await?, DeliveryReply::Recorded);
    ensure_is!(tell(bench, &key, "c", LEASE).await?.1, Telling::Told { .. });
    ensure_eq!(bench.store.told(&key, next, &Delivery::Delivered).await?, DeliveryReply::Overtaken, "sent twice");
    Ok(())
}

async fn a_lost_answer_changes_nothing(bench: &Bench) -> CaseOutcome {
    if !are_kept(bench).await? {
        return Ok(());
    }
    let (key, node, token) = (about("job", "a failed")?, node_name("a")?, bench.token());
    let faulty = bench.faulty(Op::Tell, ChaosFault::LoseReply);
    ensure!(faulty.tell(&key, &node, token, LEASE).await.is_err());
    ensure_is!(bench.store.tell(&key, &node, token, LEASE).await?, Telling::Yours { tries: 1, .. });
    let faulty = bench.faulty(Op::Told, ChaosFault::LoseReply);
    ensure!(faulty.told(&key, token, &again(WAIT)).await.is_err());
    ensure_eq!(bench.store.told(&key, token, &again(WAIT)).await?, DeliveryReply::Recorded);
    let faulty = bench.faulty(Op::Told, ChaosFault::Duplicate);
    let other = about("job", "b failed")?;
    let own = granted(bench, &other, "b", LEASE, 1).await?;
    ensure_eq!(faulty.told(&other, own, &Delivery::Delivered).await?, DeliveryReply::Recorded);
    ensure_is!(tell(bench, &other, "c", LEASE).await?.1, Telling::Told { .. });
    Ok(())
}

async fn what_is_not_told_is_listed_topic_by_topic(bench: &Bench) -> CaseOutcome {
    if !are_kept(bench).await? {
        return Ok(());
    }
    ensure_eq!(bench.store.untold(&[]).await?.1, Vec::new());
    let of_all = MessageKey::new(Topic::Cluster, "n silent", "ops");
    let of_all = of_all.map_err(|error| Failure::from(error.to_string()))?;
    let asked = [about("two", "b failed")?, about("one", "a failed")?, about("two", "a failed")?, of_all.clone()];
    for key in &asked {
        granted(bench, key, "a", LEASE, 1).await?;
    }
    let token = granted(bench, &about("two", "c failed")?, "a", LEASE, 1).await?;
    bench.store.told(&about("two", "c failed")?, token, &Delivery::Delivered).await?;
    let topics: Vec<Topic> =
        vec![Topic::Cluster, job_name("two")?.into(), job_name("none")?.into(), job_name("one")?.into()];
    let (now, listed) = bench.another().await?.untold(&topics).await?;
    ensure!(is_recent(bench, now), "the clock is {now}");
    let keys: Vec<MessageKey> = listed.iter().map(|message| message.key.clone()).collect();
    let [b_of_two, a_of_one, a_of_two, _] = asked;
    ensure_eq!(keys, vec![of_all, b_of_two, a_of_two, a_of_one]);
    for message in listed {
        let (by, remaining) = take!(message.stage, UntoldStage::Sending { by, remaining } => (by, remaining));
        ensure_eq!((by, message.tries, message.error), (node_name("a")?, 1, None));
        ensure!(is_about(remaining, LEASE) && is_recent(bench, message.first) && is_recent(bench, message.changed));
    }
    let many = (0..150).map(|index| Ok(job_name(&format!("j{index}"))?.into())).collect::<Result<Vec<_>, Failure>>()?;
    ensure_eq!(bench.store.untold(&many).await?.1, Vec::new());
    Ok(())
}

async fn messages_of_one_topic_at_the_same_time_lose_nothing(bench: &Bench) -> CaseOutcome {
    if !are_kept(bench).await? {
        return Ok(());
    }
    let mut claimers = Vec::new();
    for index in 0..12 {
        let key = about("job", &format!("{index} failed"))?;
        claimers.push((bench.another().await?, key, node_name(&format!("n{index}"))?, bench.token()));
    }
    let claims = claimers.into_iter().map(|(store, key, node, token)| {
        tokio::spawn(async move {
            let telling = store.tell(&key, &node, token, LEASE).await?;
            let reply = store.told(&key, token, &again(WAIT)).await?;
            Ok::<_, crate::store::StoreError>((telling, reply))
        })
    });
    for claim in join_all(claims).await {
        let (telling, reply) = claim.map_err(|error| Failure::from(error.to_string()))??;
        ensure_is!(telling, Telling::Yours { tries: 1, .. });
        ensure_eq!(reply, DeliveryReply::Recorded);
    }
    let listed = untold(&*bench.store, "job").await?;
    ensure_eq!(listed.len(), 12);
    ensure!(listed.iter().all(|message| matches!(message.stage, UntoldStage::Waiting { .. })), "{listed:?}");
    Ok(())
}

async fn a_message_is_kept_for_the_retention(bench: &Bench) -> CaseOutcome {
    if !are_kept(bench).await? {
        return Ok(());
    }
    let key = about("job", "a failed")?;
    let token = granted(bench, &key, "a", LEASE, 1).await?;
    bench.store.told(&key, token, &Delivery::Delivered).await?;
    let other = about("job", "b failed")?;
    let failed = granted(bench, &other, "a", LEASE, 1).await?;
    bench.store.told(&other, failed, &again(WAIT)).await?;
    let aged = |text: &str| {
        let mut parts = text.split("\"changed_ms\":");
        let first = parts.next().unwrap_or_default().to_owned();
        let rest =
            parts.map(|part| format!("\"changed_ms\":0{}", part.trim_start_matches(|c: char| c.is_ascii_digit())));
        std::iter::once(first).chain(rest).collect::<String>()
    };
    if !bench.probe.rewrite_messages(key.topic(), &aged).await? {
        return Ok(());
    }
    ensure_eq!(untold(&*bench.store, "job").await?, Vec::new());
    granted(bench, &key, "b", LEASE, 1).await?;
    // Only what is old goes.
    bench.store.purge().await?;
    ensure_is!(tell(bench, &key, "c", LEASE).await?.1, Telling::Theirs { .. });
    bench.probe.rewrite_messages(key.topic(), &aged).await?;
    bench.store.purge().await?;
    granted(bench, &key, "c", LEASE, 1).await?;
    Ok(())
}

async fn messages_stay_in_their_namespace(bench: &Bench) -> CaseOutcome {
    if !are_kept(bench).await? {
        return Ok(());
    }
    let (beside, _probe) = bench.neighbour().await?;
    let key = about("job", "a failed")?;
    let token = granted(bench, &key, "a", LEASE, 1).await?;
    ensure_eq!(untold(&*beside, "job").await?, Vec::new());
    let there = beside.tell(&key, &node_name("b")?, bench.token(), LEASE).await?;
    ensure_is!(there, Telling::Yours { tries: 1, .. });
    bench.store.told(&key, token, &Delivery::Delivered).await?;
    ensure_eq!(untold(&*beside, "job").await?.len(), 1);
    Ok(())
}

async fn words_come_back_as_they_went_in(bench: &Bench) -> CaseOutcome {
    if !are_kept(bench).await? {
        return Ok(());
    }
    let longest = "x".repeat(crate::message::LONGEST_MESSAGE - 1);
    for (subject, sink, error) in [
        ("'; DROP TABLE messages; --", "\"ops\"", "it's \"down\" \\ {}[]"),
        ("任务 失败 🦀", "钉钉", "错误"),
        (&*longest, "o", "%s $1 ?1 \\u0000"),
        ("}{|/@:", "*", ""),
    ] {
        let key = MessageKey::new(job_name("job")?, subject, sink).map_err(|error| Failure::from(error.to_string()))?;
        let token = granted(bench, &key, "a", LEASE, 1).await?;
        let delivery = Delivery::Again { after: WAIT, error: error.to_owned() };
        ensure_eq!(bench.store.told(&key, token, &delivery).await?, DeliveryReply::Recorded);
        let listed = untold(&*bench.store, "job").await?;
        let message = take!(listed.last(), Some(message) => message.clone());
        ensure_eq!((message.key, message.error.as_deref()), (key, Some(error)));
    }
    Ok(())
}

async fn what_cronward_did_not_write_is_refused_and_left(bench: &Bench) -> CaseOutcome {
    if !are_kept(bench).await? {
        return Ok(());
    }
    let key = about("job", "a failed")?;
    let token = granted(bench, &key, "a", LEASE, 1).await?;
    if !bench.probe.rewrite_messages(key.topic(), &|_| "{\"what\":\"somebody else wrote\"}".to_owned()).await? {
        return Ok(());
    }
    let errors = [
        tell(bench, &key, "b", LEASE).await.err().map(|failure| failure.to_string()),
        bench.store.told(&key, token, &Delivery::Delivered).await.err().map(|error| error.to_string()),
        bench.store.untold(&[key.topic().clone()]).await.err().map(|error| error.to_string()),
    ];
    for error in errors {
        let error = take!(error, Some(error) => error);
        ensure!(error.contains("job") && error.contains("message"), "it says where: {error}");
    }
    let error = take!(bench.store.untold(&[key.topic().clone()]).await, Err(error) => error);
    ensure_eq!((error.kind, error.applied), (ErrorKind::Corrupt, Applied::No));
    // Another topic is as it was.
    granted(bench, &about("other", "a failed")?, "a", LEASE, 1).await?;
    Ok(())
}
