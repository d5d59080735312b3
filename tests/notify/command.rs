//! `cronward notify test`: to a command, to a mail server, to a receiver that refuses.

use std::process::{Child, Command, Output, Stdio};

use tempfile::TempDir;

use crate::receiver::Receiver;
use crate::support::ports::free_port;
use crate::support::tls_files::TlsFiles;
use crate::until;

struct Place {
    folder: TempDir,
    tls: TlsFiles,
}

impl Place {
    fn with(sinks: &str) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let job = "[jobs.a]\nschedule = \"0 * * * *\"\ncommand = [\"true\"]\n";
        std::fs::write(folder.path().join("jobs.toml"), format!("{sinks}\n{job}")).unwrap();
        Self { folder, tls: TlsFiles::make() }
    }

    fn run(&self, words: &[&str]) -> Output {
        let mut command = Command::new(env!("CARGO_BIN_EXE_cronward"));
        command.args(["notify", "test"]).args(words).current_dir(self.folder.path()).stdin(Stdio::null());
        command.env_clear().env("PATH", std::env::var_os("PATH").unwrap());
        command.env("SSL_CERT_FILE", self.tls.ca()).output().unwrap()
    }

    fn read(&self, name: &str) -> String {
        std::fs::read_to_string(self.folder.path().join(name)).unwrap_or_default()
    }
}

fn said(output: &Output) -> (i32, String) {
    let text = [&output.stdout[..], &output.stderr[..]].concat();
    (output.status.code().unwrap(), String::from_utf8(text).unwrap())
}

#[test]
fn a_command_reads_the_event_in_variables_and_as_json_on_its_standard_input() {
    let place = Place::with(
        "[notify.script]\ntype = \"exec\"\ncommand = \"echo $CRONWARD_EVENT $CRONWARD_EVENT_JOB > env; cat > input; echo done\"\n\
         [notify.bad]\ntype = \"exec\"\ncommand = \"echo broken >&2; exit 3\"\n",
    );
    assert_eq!(said(&place.run(&["script", "--event", "failed"])), (0, "sent to script: exit 0: done\n".to_owned()));
    assert_eq!(place.read("env"), "failed example\n");
    let input: serde_json::Value = serde_json::from_str(&place.read("input")).unwrap();
    assert_eq!((input["type"].as_str(), input["data"]["job"].as_str()), (Some("failed"), Some("example")));
    let (code, text) = said(&place.run(&["bad"]));
    assert!(code == 1 && text.contains("exit 3: broken"), "{code} {text}");
}

#[test]
fn what_the_receiver_answered_is_said_and_a_name_that_is_not_there_has_a_nearest_one() {
    let receiver = Receiver::start();
    let place = Place::with(&format!("[notify.ops]\ntype = \"webhook\"\nurl = \"{}\"\n", receiver.url));
    assert_eq!(said(&place.run(&["ops"])), (0, "sent to ops: 204 No Content\n".to_owned()));
    assert_eq!(receiver.got()[0]["type"], "test");
    let (code, text) = said(&place.run(&["opss"]));
    assert_eq!((code, text.as_str()), (64, "error: there is no sink \"opss\"; did you mean ops?\n"));
}

/// Debian's `aiosmtpd`, which prints what it is sent; killed when dropped.
struct MailServer {
    child: Child,
    port: u16,
}

impl MailServer {
    fn start(place: &Place, more: &[&str]) -> Self {
        let port = free_port();
        let mut command = Command::new("aiosmtpd");
        command.args(["-n", "-l", &format!("127.0.0.1:{port}")]).args(more).current_dir(place.folder.path());
        command.env("PYTHONUNBUFFERED", "1").stdout(std::fs::File::create(place.folder.path().join("mails")).unwrap());
        let child = command.stderr(Stdio::null()).spawn();
        let child = child.unwrap_or_else(|error| panic!("aiosmtpd ({error}): run scripts/install-test-servers.sh"));
        until("the mail server", || std::net::TcpStream::connect(("127.0.0.1", port)).ok());
        Self { child, port }
    }
}

impl Drop for MailServer {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

fn mail(host: &str, port: u16, more: &str) -> String {
    format!(
        "[notify.mail]\ntype = \"email\"\nsmtp = \"{host}:{port}\"\nfrom = \"cronward@example.com\"\n\
         to = [\"ops@example.com\"]\nlang = \"zh\"\n{more}"
    )
}

#[test]
fn mail_goes_out_after_starttls_only_and_without_it_nothing_does() {
    let place = Place::with("");
    let tls = |name: &str| place.tls.dir().join(name).display().to_string();
    let server = MailServer::start(&place, &["--tlscert", &tls("cert.pem"), "--tlskey", &tls("key.pem")]);
    let file = |text: String| std::fs::write(place.folder.path().join("jobs.toml"), text).unwrap();
    file(mail("127.0.0.1", server.port, ""));
    let (code, text) = said(&place.run(&["mail", "--event", "failed"]));
    assert!(code == 0 && text.starts_with("sent to mail: 250"), "{code} {text}");
    let mails = until("the mail", || Some(place.read("mails")).filter(|text| text.contains("END MESSAGE")));
    for line in ["Auto-Submitted: auto-generated", "@default.cronward>", "To: ops@example.com"] {
        assert!(mails.contains(line), "{line}: {mails}");
    }
    drop(server);
    let plain = MailServer::start(&place, &[]);
    file(mail("127.0.0.1", plain.port, ""));
    let (code, text) = said(&place.run(&["mail"]));
    assert!(code == 1 && text.contains("mail"), "{code} {text}");
    assert!(!place.read("mails").contains("Subject"), "nothing goes out in plain text");
    file(mail("127.0.0.1", plain.port, "tls = \"none\"\n"));
    let (code, text) = said(&place.run(&["mail"]));
    assert!(code == 0, "{code} {text}");
}
