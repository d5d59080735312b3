//! What each receiver gets, byte by byte where it is signed, and what each of its answers means. The receivers are real: axum on
//! loopback, and sockets that hang or break.

use std::collections::BTreeSet;
use std::sync::{Arc, Mutex};

use axum::Router;
use axum::body::Bytes;
use axum::extract::State;
use axum::http::{HeaderMap, StatusCode, Uri};
use axum::response::{IntoResponse, Response};
use base64::Engine as _;
use serde_json::{Value, json};
use tokio::io::{AsyncBufReadExt, AsyncReadExt, AsyncWriteExt, BufReader};
use tokio::net::TcpListener;

use std::time::Duration;

use super::*;
use crate::config::{Lang, MailConfig, MailTls, SecretText};
use crate::event::NoticeKind;
use crate::exec::Output;
use crate::job::{JobName, Program};
use crate::notify::letter::Ping;
use crate::notify::sinks::secrets::{signature, webhook_key};
use crate::notify::trial::use_ring;

/// What a receiver got.
#[derive(Clone, Debug)]
struct Got {
    uri: String,
    headers: HeaderMap,
    body: String,
}

type Inbox = Arc<Mutex<Vec<Got>>>;

/// A receiver that answers like this: its address, and what it gets.
async fn receiver(code: u16, headers: &'static [(&'static str, &'static str)], body: &'static str) -> (String, Inbox) {
    let inbox = Inbox::default();
    let take = move |State(inbox): State<Inbox>, uri: Uri, got: HeaderMap, text: Bytes| async move {
        let body_got = String::from_utf8_lossy(&text).into_owned();
        inbox.lock().unwrap().push(Got { uri: uri.to_string(), headers: got, body: body_got });
        let mut response: Response = (StatusCode::from_u16(code).unwrap(), body).into_response();
        for (name, value) in headers {
            response.headers_mut().insert(*name, value.parse().unwrap());
        }
        response
    };
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    let app = Router::new().fallback(take).with_state(Arc::clone(&inbox));
    tokio::spawn(async move { axum::serve(listener, app).await });
    (format!("http://{address}/robot/hunter2-key"), inbox)
}

fn letter() -> Letter {
    Letter {
        id: "0123456789abcdef0123456789abcdef".to_owned(),
        at: "2026-11-21T14:05:00Z".parse().unwrap(),
        kind: "failed",
        title: "billing@2026-11-21T14Z failed".to_owned(),
        lines: vec!["<b> & disk full".to_owned()],
        json: json!({ "type": "failed" }),
        ping: None,
        job: Some(JobName::new("billing").unwrap()),
        slot: Some("2026-11-21T14Z".to_owned()),
    }
}

fn config(target: SinkTarget) -> SinkConfig {
    SinkConfig {
        target,
        lang: Lang::En,
        events: BTreeSet::new(),
        remind_after: None,
        output: true,
        title: None,
        footer: None,
        spread: Duration::ZERO,
    }
}

fn web(form: WebForm, url: &str, secret: Option<&str>) -> Sink {
    let config = config(SinkTarget::Web { form, url: SecretText::Here(url.to_owned()), secret_file: None });
    let access = SinkAccess::of(url, secret.map(str::to_owned)).unwrap();
    Sink { name: "ops".to_owned(), config, access }
}

fn ways() -> Ways {
    use_ring();
    Ways::new(Launcher::new("/proc/self/exe".into(), Output::Capture), "prod".to_owned())
}

async fn send(form: WebForm, url: &str, secret: Option<&str>) -> Receipt {
    web(form, url, secret).send(&letter(), &ways()).await
}

fn only(inbox: &Inbox) -> Got {
    let got = inbox.lock().unwrap().clone();
    assert_eq!(got.len(), 1, "{got:?}");
    got[0].clone()
}

fn body(got: &Got) -> Value {
    serde_json::from_str(&got.body).unwrap()
}

#[test]
fn the_signature_is_that_of_the_standards_own_example() {
    // The example of the Standard Webhooks specification; python3's hmac gives the same.
    let key = webhook_key("whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw").unwrap();
    let signed = b"msg_p5jXN8AQM9LWM0D4loKWxJek.1614265330.{\"test\": 2432232314}";
    assert_eq!(signature(&key, signed).unwrap(), "g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE=");
    assert_eq!(webhook_key("plain").unwrap(), b"plain");
    assert!(!webhook_key("whsec_hunter2!").unwrap_err().contains("hunter2"));
}

#[tokio::test]
async fn a_webhook_has_its_identity_its_time_and_a_signature_of_both_and_the_body() {
    let (url, inbox) = receiver(204, &[], "").await;
    assert_eq!(send(WebForm::Webhook, &url, Some("secret")).await, Receipt::Taken("204 No Content".to_owned()));
    let got = only(&inbox);
    let header = |name: &str| got.headers[name].to_str().unwrap().to_owned();
    assert_eq!((header("webhook-id"), header("webhook-timestamp")), (letter().id, "1795269900".to_owned()));
    let signed = format!("{}.1795269900.{}", letter().id, got.body);
    assert_eq!(header("webhook-signature"), format!("v1,{}", signature(b"secret", signed.as_bytes()).unwrap()));
    assert_eq!((header("content-type").as_str(), body(&got)), ("application/json", json!({ "type": "failed" })));
}

#[tokio::test]
async fn slack_gets_text_in_which_nothing_is_a_link_or_a_mention() {
    let (url, inbox) = receiver(200, &[], "ok").await;
    assert_eq!(send(WebForm::Slack, &url, None).await, Receipt::Taken("200 OK: ok".to_owned()));
    let text = "billing@2026-11-21T14Z failed\n&lt;b&gt; &amp; disk full";
    assert_eq!(body(&only(&inbox)), json!({ "text": text }));
}

#[tokio::test]
async fn dingtalk_is_signed_in_its_url_with_the_secret_as_the_key() {
    let (url, inbox) = receiver(200, &[], "{\"errcode\":0,\"errmsg\":\"ok\"}").await;
    let url = format!("{url}?access_token=abc");
    assert!(matches!(send(WebForm::DingTalk, &url, Some("SECx")).await, Receipt::Taken(_)));
    let got = only(&inbox);
    // python3: base64.b64encode(hmac.new(b"SECx", b"1795269900000\nSECx", hashlib.sha256).digest())
    let sign: String = url::form_urlencoded::byte_serialize(b"p40aaTkj07IrBG4f9XCdyWNp6c2VHl8XGZEgBU6XMNM=").collect();
    let query = format!("access_token=abc&timestamp=1795269900000&sign={sign}");
    assert_eq!(got.uri.split_once('?').unwrap().1, query);
    assert_eq!(body(&got)["text"]["content"], letter().text());
}

#[tokio::test]
async fn feishu_is_signed_in_its_body_with_time_and_secret_as_the_key_of_nothing() {
    let (url, inbox) = receiver(200, &[], "{\"code\":0,\"msg\":\"success\"}").await;
    assert!(matches!(send(WebForm::Feishu, &url, Some("SECx")).await, Receipt::Taken(_)));
    let body = body(&only(&inbox));
    // python3: base64.b64encode(hmac.new(b"1795269900\nSECx", b"", hashlib.sha256).digest())
    let wanted = json!({
        "timestamp": "1795269900", "sign": "KPdUNfGqfpq8HqBT8fkUsSFf32D9wP7N6RMGV7XKcdo=", "msg_type": "text", "content": { "text": letter().text() },
    });
    assert_eq!(body, wanted);
}

#[tokio::test]
async fn wecom_gets_no_more_bytes_than_it_takes_cut_between_characters() {
    let (url, inbox) = receiver(200, &[], "{\"errcode\":0}").await;
    let long = Letter { lines: vec!["错".repeat(3_000)], ..letter() };
    let answer = web(WebForm::WeCom, &url, None).send(&long, &ways()).await;
    assert!(matches!(answer, Receipt::Taken(_)));
    let content = body(&only(&inbox))["text"]["content"].as_str().unwrap().to_owned();
    assert!(content.len() <= 2_048 && content.len() > 2_040 && content.ends_with("错…"), "{}", content.len());
}

#[tokio::test]
async fn a_robot_that_answers_200_with_a_code_has_taken_nothing() {
    for (form, answer, after) in [
        (WebForm::DingTalk, "{\"errcode\":130101,\"errmsg\":\"too fast\"}", Some(600)),
        (WebForm::DingTalk, "{\"errcode\":310000,\"errmsg\":\"sign not match\"}", None),
        (WebForm::Feishu, "{\"code\":11232,\"msg\":\"frequency limited\"}", Some(60)),
        (WebForm::Feishu, "{\"code\":19021,\"msg\":\"sign match fail\"}", None),
        (WebForm::WeCom, "{\"errcode\":45009,\"errmsg\":\"limit\"}", Some(60)),
        (WebForm::WeCom, "{\"errcode\":93000,\"errmsg\":\"invalid\"}", None),
        (WebForm::WeCom, "<html>", None),
    ] {
        let (url, _inbox) = receiver(200, &[], answer).await;
        match (send(form, &url, None).await, after) {
            (Receipt::Again { after: Some(wait), .. }, Some(seconds)) => assert_eq!(wait.as_secs(), seconds),
            (Receipt::Refused(error), None) => assert!(error.contains("answered"), "{error}"),
            other => panic!("{answer}: {other:?}"),
        }
    }
}

#[tokio::test]
async fn what_passes_is_tried_again_and_what_does_not_is_given_up() {
    type Headers = &'static [(&'static str, &'static str)];
    let cases: [(u16, Headers, Option<Option<u64>>); 8] = [
        (500, &[], Some(None)),
        (503, &[("retry-after", "120")], Some(Some(120))),
        (429, &[("retry-after", "7")], Some(Some(7))),
        (429, &[("retry-after", "99999999")], Some(Some(6 * 3_600))),
        (408, &[], Some(None)),
        (404, &[], None),
        (401, &[], None),
        (302, &[("location", "http://127.0.0.1:1/elsewhere")], None),
    ];
    for (code, headers, again) in cases {
        let (url, inbox) = receiver(code, headers, "no").await;
        match (send(WebForm::Webhook, &url, None).await, again) {
            (Receipt::Again { after, .. }, Some(wanted)) => {
                assert_eq!(after.map(|after| after.as_secs()), wanted, "{code}");
            }
            (Receipt::Refused(error), None) => assert!(error.contains(&code.to_string()), "{error}"),
            other => panic!("{code}: {other:?}"),
        }
        only(&inbox);
    }
}

#[tokio::test]
async fn a_receiver_that_breaks_off_or_is_not_there_is_asked_again() {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    let breaking = tokio::spawn(async move {
        let (mut socket, _) = listener.accept().await.unwrap();
        let _ = socket.read(&mut [0; 64]).await;
    });
    let url = format!("http://{address}/hunter2-key");
    for _ in 0..2 {
        let Receipt::Again { after: None, error } = send(WebForm::Webhook, &url, None).await else {
            panic!("is to be tried again")
        };
        assert!(!error.contains("hunter2"), "{error}");
    }
    breaking.await.unwrap();
}

#[tokio::test(start_paused = true)]
async fn a_receiver_that_hangs_is_left_after_ten_seconds() {
    let answer =
        tokio::time::timeout(Duration::from_secs(60), in_time(std::future::pending())).await.expect("a try has an end");
    assert_eq!(answer, Receipt::again("no answer within 10 s"));
}

#[tokio::test]
async fn a_receiver_that_takes_a_message_and_never_answers_is_asked_again() {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("http://{}/hunter2-key", listener.local_addr().unwrap());
    let hanging = tokio::spawn(async move {
        let (mut socket, _) = listener.accept().await.unwrap();
        let mut got = Vec::new();
        while !got.ends_with(b"{\"type\":\"failed\"}") {
            socket.read_buf(&mut got).await.unwrap();
        }
        socket.write_all(b"HTTP/1.1 204 No Content\r\n\r\n").await.unwrap();
        // The next message is read, and nothing is said.
        while socket.read_buf(&mut got).await.is_ok_and(|read| read > 0) {}
    });
    let (sink, ways) = (web(WebForm::Webhook, &url, None), ways());
    assert_eq!(sink.send(&letter(), &ways).await, Receipt::Taken("204 No Content".to_owned()));
    // The connection is there: no time passes but that of the answer.
    tokio::time::pause();
    let answer =
        tokio::time::timeout(Duration::from_secs(60), sink.send(&letter(), &ways)).await.expect("a try has an end");
    assert_eq!(answer, Receipt::again("no answer within 10 s"));
    drop(ways);
    hanging.await.unwrap();
}

#[tokio::test]
async fn no_answer_brings_the_url_back_into_a_text() {
    let (url, _inbox) = receiver(404, &[], "no such robot: /robot/hunter2-key, hunter2-key").await;
    let Receipt::Refused(error) = send(WebForm::Slack, &url, None).await else { panic!("refused") };
    assert!(!error.contains("hunter2"), "{error}");
    assert!(!format!("{:?}", web(WebForm::Slack, &url, Some("hunter2"))).contains("hunter2"));
}

#[tokio::test]
async fn an_answer_that_is_cut_within_the_secret_shows_no_part_of_it() {
    for before in 130..165 {
        let body: &'static str = format!("{}/robot/hunter2-key", "x".repeat(before)).leak();
        for (code, form) in [(404, WebForm::Slack), (200, WebForm::WeCom)] {
            let (url, _inbox) = receiver(code, &[], body).await;
            let Receipt::Refused(error) = send(form, &url, None).await else { panic!("refused") };
            assert!(!error.contains("hunt") && error.contains("xxx"), "{before}: {error}");
        }
    }
}

#[tokio::test]
async fn the_url_of_a_check_is_not_shown_with_the_name_of_the_job_in_it_either() {
    let (url, inbox) = receiver(404, &[], "no check at /robot/hunter2-billing, nor hunter2-test").await;
    let sink = web(WebForm::Healthchecks, &url.replace("hunter2-key", "hunter2-{job}"), None);
    for ping in [None, Some(("billing", "0189f7a0-0000-8000-8000-000000000001"))] {
        let ping = ping.map(|(job, run)| Ping {
            kind: NoticeKind::Failed,
            job: JobName::new(job).unwrap(),
            run: run.to_owned(),
            output: String::new(),
            outdated: false,
        });
        let name = ping.as_ref().map_or("test", |_| "billing");
        let Receipt::Refused(error) = sink.send(&Letter { ping, ..letter() }, &ways()).await else { panic!("refused") };
        assert!(!error.contains(&format!("hunter2-{name}")) && error.contains("no check at"), "{error}");
    }
    assert_eq!(inbox.lock().unwrap().len(), 2);
    let short = SinkAccess::of("https://hc.example/p/k1/{job}", None).unwrap().about("billing");
    assert_eq!(short.redact("billing: https://hc.example/p/k1/billing/fail is gone"), "billing: ***/fail is gone");
}

#[test]
fn a_secret_that_a_receiver_repeats_in_another_form_is_not_shown() {
    let of = |url: &str, secret: Option<&str>| SinkAccess::of(url, secret.map(str::to_owned)).unwrap();
    let file = tempfile::NamedTempFile::new().unwrap();
    std::fs::write(file.path(), "MyMailPassword123").unwrap();
    let mail = MailConfig { user: Some("bob".to_owned()), secret_file: Some(file.path().to_owned()), ..mail_to(25) };
    let mail = SinkAccess::read(&SinkTarget::Mail(mail)).unwrap();
    let login = of("https://bob:p%40ssw0rd@chat.example/hook", None);
    for (access, said) in [
        // What base64 makes of it: python3 -c 'import base64; print(base64.b64encode(b"bob:p@ssw0rd"))' and so on.
        (&login, "Authorization: Basic Ym9iOnBAc3N3MHJk"),
        (&login, "no user bob with p@ssw0rd, or p%40ssw0rd"),
        (&mail, "535 rejected: AUTH PLAIN AGJvYgBNeU1haWxQYXNzd29yZDEyMw=="),
        (&mail, "535 rejected: TXlNYWlsUGFzc3dvcmQxMjM="),
        (&of("https://chat.example/hook", Some("whsec_c2VjcmV0LXNlY3JldA==")), "no key c2VjcmV0LXNlY3JldA== here"),
        (
            &of("https://chat.example/hook?key=SEC%2BRET%2BKEY", None),
            "no such key=SEC%2BRET%2BKEY, that is SEC+RET+KEY",
        ),
        // It broke off.
        (&of("https://chat.example/hook", Some("c2VjcmV0LXNlY3JldA")), "no signature with c2VjcmV0LX"),
    ] {
        let shown = access.redact(said);
        let parts = ["Ym9i", "ssw0rd", "AGJv", "TXlN", "c2Vj", "SEC"];
        assert!(shown.contains("***") && parts.iter().all(|part| !shown.contains(part)), "{shown}");
        assert!(shown.starts_with(&said[..6]), "{shown}");
    }
}

#[tokio::test]
async fn a_check_gets_a_signal_for_each_step_of_a_run_with_the_same_identity() {
    let (url, inbox) = receiver(200, &[], "OK").await;
    let url = url.replace("hunter2-key", "{job}");
    let sink = web(WebForm::Healthchecks, &url, None);
    let run = "0189f7a0-0000-8000-8000-000000000001";
    for kind in [
        NoticeKind::Started,
        NoticeKind::AttemptFailed,
        NoticeKind::Succeeded,
        NoticeKind::Failed,
        NoticeKind::Missed,
        NoticeKind::Late,
    ] {
        let ping = Ping {
            kind,
            job: JobName::new("billing").unwrap(),
            run: run.to_owned(),
            output: "disk full".to_owned(),
            outdated: false,
        };
        let answer = sink.send(&Letter { ping: Some(ping), ..letter() }, &ways()).await;
        assert!(matches!(answer, Receipt::Taken(_)), "{answer:?}");
    }
    let got: Vec<(String, String)> =
        inbox.lock().unwrap().iter().map(|got| (got.uri.clone(), got.body.clone())).collect();
    let wanted = ["/start", "/log", "", "/fail", "/fail"]
        .map(|signal| (format!("/robot/billing{signal}?rid={run}"), "disk full".to_owned()));
    assert_eq!(got, wanted);
    // One that comes after a later slot has ended would turn the check back.
    let ping = Ping {
        kind: NoticeKind::Failed,
        job: JobName::new("billing").unwrap(),
        run: run.to_owned(),
        output: String::new(),
        outdated: true,
    };
    let answer = sink.send(&Letter { ping: Some(ping), ..letter() }, &ways()).await;
    assert!(matches!(answer, Receipt::Taken(_)) && inbox.lock().unwrap().len() == wanted.len(), "{answer:?}");
}

#[test]
fn a_mail_says_that_a_program_wrote_it_and_has_the_messages_identity() {
    let config = MailConfig { to: vec!["a@example.com".to_owned(), "b@example.com".to_owned()], ..mail_to(25) };
    let letter = Letter { title: "billing 失败\r\nBcc: x@example.com".to_owned(), ..letter() };
    let mail = String::from_utf8(email::message(&config, &letter, "prod").unwrap().formatted()).unwrap();
    assert!(mail.contains("Auto-Submitted: auto-generated\r\n"), "{mail}");
    assert!(mail.contains("Message-ID: <0123456789abcdef0123456789abcdef@prod.cronward>\r\n"), "{mail}");
    assert!(mail.contains("To: a@example.com, b@example.com\r\n"), "{mail}");
    assert!(mail.contains("Content-Type: text/plain; charset=utf-8\r\n"), "{mail}");
    assert!(!mail.split("\r\n\r\n").next().unwrap().contains("\r\nBcc:"), "{mail}");
    let bad = MailConfig { to: vec!["nobody".to_owned()], ..config };
    assert!(email::message(&bad, &letter, "prod").is_err());
}

fn mail_to(port: u16) -> MailConfig {
    MailConfig {
        host: "127.0.0.1".to_owned(),
        port,
        tls: MailTls::None,
        user: None,
        secret_file: None,
        from: "cronward@example.com".to_owned(),
        to: vec!["a@example.com".to_owned()],
    }
}

async fn send_mail(mail: MailConfig) -> Receipt {
    Sink::open("ops", config(SinkTarget::Mail(mail))).unwrap().send(&letter(), &ways()).await
}

#[tokio::test]
async fn a_mail_server_that_is_not_there_is_asked_again() {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let port = listener.local_addr().unwrap().port();
    drop(listener);
    let answer = send_mail(mail_to(port)).await;
    assert!(matches!(&answer, Receipt::Again { error, .. } if error.contains("refused")), "{answer:?}");
}

/// A mail server that says this at one of its words, and elsewhere what lets the mail through: its port, and what it heard.
async fn mail_server(word: &'static str, says: &'static str) -> (u16, Arc<Mutex<Vec<String>>>) {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let (port, heard) = (listener.local_addr().unwrap().port(), Arc::<Mutex<Vec<String>>>::default());
    let ear = Arc::clone(&heard);
    tokio::spawn(async move {
        while let Ok((socket, _)) = listener.accept().await {
            let (read, mut write) = socket.into_split();
            let mut lines = BufReader::new(read).lines();
            let (mut line, mut is_text) = ("GREETING".to_owned(), false);
            loop {
                let usual = match line.split(' ').next().unwrap() {
                    _ if is_text && line != "." => "",
                    "GREETING" => "220 mail.example",
                    "EHLO" => "250-mail.example\r\n250 AUTH PLAIN LOGIN",
                    "AUTH" => "235 welcome",
                    "DATA" => "354 go on",
                    "QUIT" => "221 bye",
                    _ => "250 ok",
                };
                let said = if line.starts_with(word) && !usual.is_empty() { says } else { usual };
                is_text = (is_text && line != ".") || said.starts_with("354");
                if !said.is_empty() && write.write_all(format!("{said}\r\n").as_bytes()).await.is_err() {
                    break;
                }
                let Ok(Some(next)) = lines.next_line().await else { break };
                ear.lock().unwrap().push(next.clone());
                line = next;
            }
        }
    });
    (port, heard)
}

#[tokio::test]
async fn one_recipient_who_is_refused_keeps_no_mail_from_the_others() {
    let two = |port| MailConfig { to: vec!["a@example.com".to_owned(), "b@example.com".to_owned()], ..mail_to(port) };
    let (port, heard) = mail_server("RCPT TO:<b@", "550 no such user").await;
    let Receipt::Taken(said) = send_mail(two(port)).await else { panic!("a has it") };
    assert!(said.starts_with("250: ok; not taken for b@example.com: ") && !said.contains("a@"), "{said}");
    let heard = heard.lock().unwrap().clone();
    assert_eq!(heard.iter().filter(|line| *line == "DATA").count(), 1, "a has it once");
    assert!(heard.iter().any(|line| line == "To: a@example.com, b@example.com"));
    let (port, _) = mail_server("RCPT", "550 no such user").await;
    let Receipt::Refused(error) = send_mail(two(port)).await else { panic!("nobody has it") };
    assert!(error.contains("a@example.com: ") && error.contains("; b@example.com: "), "{error}");
}

#[tokio::test]
async fn what_passes_by_itself_and_a_wrong_password_ask_the_server_for_nobody_alone() {
    let two = |port| MailConfig { to: vec!["a@example.com".to_owned(), "b@example.com".to_owned()], ..mail_to(port) };
    for (word, says) in [("RCPT TO:<b@", "450 greylisted"), ("MAIL", "535 wrong password")] {
        let (port, heard) = mail_server(word, says).await;
        let answer = send_mail(two(port)).await;
        assert_eq!(matches!(answer, Receipt::Again { .. }), says.starts_with('4'), "{answer:?}");
        let asked = heard.lock().unwrap().iter().filter(|line| line.starts_with("EHLO")).count();
        assert_eq!(asked, 1, "{says}");
    }
}

#[tokio::test]
async fn a_mail_that_is_refused_for_now_is_sent_again_and_one_that_is_refused_for_good_is_given_up() {
    for (word, says, again) in [
        ("GREETING", "421 too many connections", true),
        ("GREETING", "554 nobody sends from there", false),
        ("MAIL", "451 try later", true),
        ("MAIL", "553 no such sender", false),
        ("RCPT", "450 greylisted", true),
        ("RCPT", "550 no such user", false),
        ("DATA", "452 the disk is full", true),
        ("DATA", "554 no valid recipients", false),
        (".", "451 cannot be scanned now", true),
        (".", "552 too large", false),
    ] {
        let (port, heard) = mail_server(word, says).await;
        let error = match (send_mail(mail_to(port)).await, again) {
            (Receipt::Again { after: None, error }, true) | (Receipt::Refused(error), false) => error,
            other => panic!("{word} {says}: {other:?}"),
        };
        let (code, why) = says.split_once(' ').unwrap();
        assert!(error.contains(code) && error.contains(why), "{says}: {error}");
        let whole = heard.lock().unwrap().iter().any(|line| line == ".");
        assert_eq!(whole, word == ".", "{word}: nothing of the mail is sent after a refusal");
    }
    let (port, heard) = mail_server(".", "250 queued as 7").await;
    assert_eq!(send_mail(mail_to(port)).await, Receipt::Taken("250: queued as 7".to_owned()));
    assert!(heard.lock().unwrap().contains(&"RCPT TO:<a@example.com>".to_owned()), "{heard:?}");
}

#[tokio::test]
async fn who_has_a_password_logs_in_before_the_mail_and_only_where_nobody_else_can_read_it() {
    let folder = tempfile::tempdir().unwrap();
    let secret = folder.path().join("password");
    std::fs::write(&secret, "hunter2-mail\n").unwrap();
    let known =
        |port| MailConfig { user: Some("cronward".to_owned()), secret_file: Some(secret.clone()), ..mail_to(port) };
    let (port, heard) = mail_server("AUTH", "235 welcome").await;
    assert_eq!(send_mail(known(port)).await, Receipt::Taken("250: ok".to_owned()));
    let words: Vec<String> = heard.lock().unwrap().iter().take(3).cloned().collect();
    let login = base64::engine::general_purpose::STANDARD.encode("\0cronward\0hunter2-mail");
    assert_eq!(words[1], format!("AUTH PLAIN {login}"));
    assert!(words[0].starts_with("EHLO ") && words[2].starts_with("MAIL FROM:<cronward@example.com>"), "{words:?}");
    for (says, again) in [("454 the directory is away", true), ("535 hunter2-mail is wrong", false)] {
        let (port, heard) = mail_server("AUTH", says).await;
        let answer = send_mail(known(port)).await;
        assert_eq!(matches!(answer, Receipt::Again { .. }), again, "{answer:?}");
        assert_eq!(matches!(answer, Receipt::Refused(_)), !again, "{answer:?}");
        assert!(format!("{answer:?}").contains(&says[..3]) && !format!("{answer:?}").contains("hunter2"), "{answer:?}");
        assert!(!heard.lock().unwrap().iter().any(|line| line.starts_with("MAIL")), "{heard:?}");
    }
    // It offers no STARTTLS.
    let (port, heard) = mail_server("AUTH", "235 welcome").await;
    let answer = send_mail(MailConfig { tls: MailTls::StartTls, ..known(port) }).await;
    assert!(matches!(answer, Receipt::Again { .. }), "{answer:?}");
    let told = |line: &String| line.starts_with("AUTH") || line.starts_with("MAIL");
    assert!(!heard.lock().unwrap().iter().any(told), "{heard:?}");
}

#[tokio::test]
async fn a_command_that_cannot_be_started_is_tried_again() {
    let launcher = Launcher::new("/nowhere/cronward".into(), Output::Capture);
    let sink = Sink::open("ops", config(SinkTarget::Exec(Program::Direct(vec!["true".to_owned()])))).unwrap();
    let answer = sink.send(&letter(), &Ways::new(launcher, "prod".to_owned())).await;
    assert!(matches!(&answer, Receipt::Again { error, .. } if error.contains("/nowhere/cronward")), "{answer:?}");
}

#[test]
fn a_secret_that_cannot_be_read_is_told_by_its_file() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("url");
    let open = || {
        let url = SecretText::File(path.clone());
        Sink::open("ops", config(SinkTarget::Web { form: WebForm::Slack, url, secret_file: None })).map(|_| ())
    };
    assert!(open().unwrap_err().starts_with("[notify.ops] url_file"));
    std::fs::write(&path, "hunter2\n").unwrap();
    let error = open().unwrap_err();
    assert!(error.contains("https://") && !error.contains("hunter2"), "{error}");
    std::fs::write(&path, "https://hooks.example/x\n").unwrap();
    assert_eq!(open(), Ok(()));
}
