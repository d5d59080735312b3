//! `[notify.NAME]`: what is read of it, and what is told of each slip.

use std::path::PathBuf;
use std::time::Duration;

use cronward::config::{Lang, MailConfig, MailTls, SecretText, SinkTarget, WebForm};
use cronward::event::NoticeKind;

use super::{config, job, report, tells, told};

/// A sink that every job of the text names, and a job.
fn with(lines: &str) -> String {
    format!("[notify.ops]\n{lines}\n{}", job("notify = [\"ops\"]"))
}

#[test]
fn a_sink_says_where_messages_go_which_and_how() {
    let text = with(
        "type = \"dingtalk\"\nurl_file = \"/run/ops-url\"\nsecret_file = \"/run/ops-secret\"\nlang = \"zh\"\n\
         events = [\"failed\", \"node_silent\"]\nremind_after = \"4h\"\noutput = false\ntitle = \"[prod]\"\nfooter = \"ana\"\nspread = \"0s\"",
    );
    let sink = config(&text).notify.remove("ops").unwrap();
    assert_eq!(
        sink.target,
        SinkTarget::Web {
            form: WebForm::DingTalk,
            url: SecretText::File(PathBuf::from("/run/ops-url")),
            secret_file: Some(PathBuf::from("/run/ops-secret")),
        }
    );
    assert_eq!((sink.lang, sink.output, sink.spread), (Lang::Zh, false, Duration::ZERO));
    assert_eq!(sink.remind_after, Some(Duration::from_secs(4 * 3_600)));
    assert_eq!(sink.events, [NoticeKind::Failed, NoticeKind::NodeSilent, NoticeKind::Reminder].into());
    assert_eq!((sink.title.as_deref(), sink.footer.as_deref()), (Some("[prod]"), Some("ana")));
    assert_eq!(told(&text), Vec::<String>::new());
}

#[test]
fn mail_needs_a_server_a_sender_and_recipients_and_protects_what_it_sends() {
    let text = with("type = \"email\"\nsmtp = \"mail.example\"\nfrom = \"c@example.com\"\nto = [\"ops@example.com\"]");
    let sink = config(&text).notify.remove("ops").unwrap();
    let wanted = MailConfig {
        host: "mail.example".to_owned(),
        port: 587,
        tls: MailTls::StartTls,
        user: None,
        secret_file: None,
        from: "c@example.com".to_owned(),
        to: vec!["ops@example.com".to_owned()],
    };
    assert_eq!(sink.target, SinkTarget::Mail(wanted));
    let of = |server: &str, more: &str| {
        with(&format!(
            "type = \"email\"\nsmtp = \"{server}\"\nfrom = \"c@example.com\"\nto = [\"o@example.com\"]\n{more}"
        ))
    };
    let SinkTarget::Mail(mail) = config(&of("mail.example:465", "")).notify.remove("ops").unwrap().target else {
        panic!()
    };
    assert_eq!(mail.tls, MailTls::Tls);
    config(&of("127.0.0.1:25", "tls = \"none\""));
    tells(&of("mail.example:25", "tls = \"none\""), "6:7 plain-mail: tls may be \"none\" on loopback only");
    tells(&of("mail.example", "user = \"u\""), "1:9 half-login: user and secret_file go together");
    tells(&of("mail.example:x", ""), "3:8 bad-address: smtp cannot be \"mail.example:x\"");
}

#[test]
fn what_a_job_names_has_to_be_there() {
    let sink = "[notify.ops]\ntype = \"exec\"\ncommand = [\"true\"]\n";
    tells(
        &format!("{sink}{}", job("notify = [\"opss\"]")),
        "7:10 unknown-sink: notify: there is no sink \"opss\" (did you mean \"ops\"?)",
    );
    tells(&job("notify = [\"ops\"]"), "4:10 unknown-sink: notify: there is no sink \"ops\" (add [notify.ops]");
    let in_defaults = format!("{sink}[defaults]\nnotify = [\"ops\"]\n{}", job(""));
    assert_eq!(config(&in_defaults).jobs.values().next().unwrap().notify, ["ops"]);
}

#[test]
fn a_sink_that_no_job_names_is_told_of_unless_it_hears_of_nodes() {
    let sink = "[notify.ops]\ntype = \"exec\"\ncommand = [\"true\"]\n";
    tells(&format!("{sink}{}", job("")), "1:9 unused-sink: no job has \"ops\" in its notify");
    assert_eq!(told(&format!("{sink}events = [\"node_silent\"]\n{}", job(""))), Vec::<String>::new());
}

#[test]
fn a_url_in_the_file_is_warned_of_and_never_shown() {
    let text = with("type = \"slack\"\nurl = \"https://hooks.example/hunter2\"");
    tells(&text, "3:7 secret-in-file: the url of a sink is in the file");
    assert!(!report(&text).to_string().contains("hunter2"));
    assert!(!format!("{:?}", config(&text)).contains("hunter2"));
    assert_eq!(told(&with("type = \"slack\"\nurl = \"http://127.0.0.1:9/x\"")), Vec::<String>::new());
}

#[test]
fn each_slip_has_its_place_and_a_way_out() {
    for (lines, expected) in [
        ("url = \"http://localhost/\"", "1:9 missing-type: the sink has no type"),
        ("type = \"slak\"\nurl = \"http://localhost/\"", "2:8 bad-word: type"),
        ("type = \"slack\"", "1:9 missing-url: the sink has no url (add url_file"),
        ("type = \"slack\"\nurl = \"ftp://localhost/\"", "3:7 bad-url: url is no address that takes messages"),
        (
            "type = \"slack\"\nurl = \"http://localhost/\"\nurl_file = \"/x\"",
            "4:12 both-urls: url_file is given besides url",
        ),
        (
            "type = \"slack\"\nurl_file = \"/x\"\nsecret_file = \"/y\"",
            "4:1 unknown-key: unknown key secret_file in [notify.ops]",
        ),
        ("type = \"slack\"\nurl_file = \"/x\"\nevents = []", "4:10 empty: events is empty"),
        ("type = \"slack\"\nurl_file = \"/x\"\nevents = [\"faild\"]", "4:11 bad-word: events[0]"),
        (
            "type = \"slack\"\nurl_file = \"/x\"\nevents = [\"reminder\"]",
            "4:11 bad-word: events[0] is not told by itself (write remind_after",
        ),
        (
            "type = \"healthchecks\"\nurl_file = \"/x\"\nevents = [\"late\"]",
            "4:11 bad-word: events[0] is nothing that Healthchecks",
        ),
        ("type = \"slack\"\nurl_file = \"/x\"\nremind_after = \"1s\"", "4:16 out-of-range: remind_after"),
        ("type = \"slack\"\nurl_file = \"/x\"\ntitle = \"a\\nb\"", "4:9 bad-text: title is no line"),
        ("type = \"exec\"", "1:9 missing-command"),
        (
            "type = \"email\"\nsmtp = \"m\"\nfrom = \"c@x.y\"\nto = [\"ops\"]",
            "5:7 bad-address: to[0] cannot be \"ops\"",
        ),
    ] {
        tells(&with(lines), expected);
    }
    tells(
        &format!("[notify.\"O ps\"]\ntype = \"exec\"\ncommand = [\"true\"]\n{}", job("")),
        "1:9 bad-name: sink \"O ps\" is not allowed",
    );
}
