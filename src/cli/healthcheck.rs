//! `cronward healthcheck`: asks a daemon's port whether it is well, for images that have no other client, and ends with 0 or 1.

use std::io::{self, Read, Write};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr, TcpStream, ToSocketAddrs};
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use rustls::pki_types::ServerName;
use rustls::{ClientConnection, StreamOwned};
use url::Url;

use crate::cli::console::Console;
use crate::cli::failure::Failure;
use crate::cli::store_args::{self, surroundings};
use crate::clock::{Clock, Mono, SystemClock};
use crate::config;
use crate::store::redact;
use crate::web;

/// For the connection, and for the answer.
const LIMIT: Duration = Duration::from_secs(3);
/// More is not read of an answer.
const LONGEST: usize = 16 * 1_024;

/// Ask a daemon's port whether it is well: exit code 0, or 1
#[derive(Debug, clap::Args)]
#[command(before_help = "Example: cronward healthcheck --ready --config /etc/cronward/jobs.toml")]
pub(crate) struct HealthcheckArgs {
    /// Whether it is ready: its store reached, not about to leave. Otherwise whether it is alive
    #[arg(long)]
    pub(crate) ready: bool,
    /// The file whose [http] says where it listens [default: ./jobs.toml, then /etc/cronward/jobs.toml]
    #[arg(long, value_name = "PATH")]
    pub(crate) config: Option<PathBuf>,
    /// Where it listens, with its base path: http://127.0.0.1:9747/
    #[arg(long, value_name = "URL", conflicts_with = "config")]
    pub(crate) url: Option<String>,
}

/// Where to ask.
struct Port {
    address: SocketAddr,
    host: String,
    path: String,
    /// The certificate that is believed, where the port speaks TLS.
    cert_file: Option<PathBuf>,
}

impl Port {
    const fn scheme(&self) -> &'static str {
        if self.cert_file.is_some() { "https" } else { "http" }
    }
}

/// Asks, and tells what was answered where that is not "well".
pub(crate) fn healthcheck(args: &HealthcheckArgs, console: &mut Console) -> Result<(), Failure> {
    let port = match &args.url {
        Some(url) => of_url(url)?,
        None => of_file(args, console)?,
    };
    let path = format!("{}/{}", port.path.trim_end_matches('/'), if args.ready { "readyz" } else { "healthz" });
    let url = format!("{}://{}{path}", port.scheme(), port.host);
    match ask(&port, &path, LIMIT) {
        Ok(answer) if is_well(&answer) => Ok(()),
        Ok(answer) => Err(Failure::Unwell(format!("{url} answers: {}", told(&answer)))),
        Err(error) => Err(Failure::Unwell(format!("{url} does not answer{}", why(&error)))),
    }
}

fn of_url(text: &str) -> Result<Port, Failure> {
    let shown = redact(text);
    let wrong =
        |why: &str| Failure::Usage(format!("--url {shown}: {why}; write something like http://127.0.0.1:9747/"));
    let url = Url::parse(text).ok().ok_or_else(|| wrong("is no address with http"))?;
    if url.scheme() == "https" {
        let fix = "write --config with the file whose [http.tls] names the certificate to believe";
        return Err(Failure::Usage(format!("--url {shown}: a port with TLS is not asked by its address; {fix}")));
    }
    if url.scheme() != "http" {
        return Err(wrong("is no address with http"));
    }
    let host = url.host_str().ok_or_else(|| wrong("has no host"))?;
    let port = url.port_or_known_default().unwrap_or(80);
    let found = (host.trim_matches(['[', ']']), port).to_socket_addrs().ok().and_then(|mut found| found.next());
    let address = found.ok_or_else(|| wrong("has an unknown host"))?;
    Ok(Port { address, host: format!("{host}:{port}"), path: url.path().to_owned(), cert_file: None })
}

fn of_file(args: &HealthcheckArgs, console: &mut Console) -> Result<Port, Failure> {
    let path = store_args::find(args.config.as_deref())?;
    let (file, _) = store_args::read(&path, console, surroundings().reading_streams(), config::load)?;
    let Some(http) = file.http else {
        let shown = path.display();
        return Err(Failure::Configuration(format!(
            "{shown} has no [http]: no port is served; add --url for one of `run --listen`"
        )));
    };
    let port = http.listen.port();
    let address = match http.listen.ip() {
        ip if !ip.is_unspecified() => http.listen,
        IpAddr::V4(_) => (Ipv4Addr::LOCALHOST, port).into(),
        IpAddr::V6(_) => (Ipv6Addr::LOCALHOST, port).into(),
    };
    Ok(Port { address, host: address.to_string(), path: http.base_path, cert_file: http.tls.map(|tls| tls.cert_file) })
}

fn ask(port: &Port, path: &str, limit: Duration) -> io::Result<String> {
    let until = SystemClock.now().mono + limit;
    let stream = InTime { stream: TcpStream::connect_timeout(&port.address, limit)?, until };
    let request = format!("GET {path} HTTP/1.1\r\nHost: {}\r\nConnection: close\r\n\r\n", port.host);
    let Some(cert_file) = &port.cert_file else { return exchange(stream, &request) };
    let client = web::client_of(cert_file).map_err(io::Error::other)?;
    let name = ServerName::from(port.address.ip());
    let session = ClientConnection::new(Arc::new(client), name).map_err(io::Error::other)?;
    exchange(StreamOwned::new(session, stream), &request).map_err(|error| match error.get_ref() {
        // The server has not taken what is in the file, or is another one.
        Some(inner) if inner.to_string().contains("ApplicationVerificationFailure") => {
            io::Error::other(format!("it shows another certificate than {}: send it HUP", cert_file.display()))
        }
        _ => error,
    })
}

/// Why there is no answer. What the system calls a wait that was too long does not say so.
fn why(error: &io::Error) -> String {
    match error.kind() {
        io::ErrorKind::TimedOut | io::ErrorKind::WouldBlock => format!(" within {} s", LIMIT.as_secs()),
        _ => format!(": {error}"),
    }
}

fn exchange(mut stream: impl Read + Write, request: &str) -> io::Result<String> {
    stream.write_all(request.as_bytes())?;
    stream.flush()?;
    let (mut answer, mut part) = (Vec::new(), [0; 1_024]);
    while answer.len() < LONGEST {
        match stream.read(&mut part) {
            Ok(0) => break,
            Ok(count) => answer.extend(part.iter().take(count)),
            // A server need not say goodbye to say all.
            Err(error) if error.kind() == io::ErrorKind::UnexpectedEof && !answer.is_empty() => break,
            Err(error) => return Err(error),
        }
    }
    Ok(String::from_utf8_lossy(&answer).into_owned())
}

/// All that is sent and read ends by then: what comes byte by byte, too.
struct InTime {
    stream: TcpStream,
    until: Mono,
}

impl InTime {
    fn left(&self) -> io::Result<Option<Duration>> {
        let left = self.until.since(SystemClock.now().mono);
        if left.is_zero() { Err(io::ErrorKind::TimedOut.into()) } else { Ok(Some(left)) }
    }
}

impl Read for InTime {
    fn read(&mut self, part: &mut [u8]) -> io::Result<usize> {
        self.stream.set_read_timeout(self.left()?)?;
        self.stream.read(part)
    }
}

impl Write for InTime {
    fn write(&mut self, part: &[u8]) -> io::Result<usize> {
        self.stream.set_write_timeout(self.left()?)?;
        self.stream.write(part)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.stream.flush()
    }
}

fn is_well(answer: &str) -> bool {
    answer.starts_with("HTTP/1.1 200 ")
}

/// The status, and why, where the answer says so.
fn told(answer: &str) -> String {
    let status = answer.lines().next().unwrap_or("nothing").trim_start_matches("HTTP/1.1 ");
    let body = answer.split_once("\r\n\r\n").map_or("", |(_, body)| body);
    let problem = serde_json::from_str::<serde_json::Value>(body).ok();
    let detail = problem.as_ref().and_then(|problem| problem.get("detail")?.as_str());
    crate::text::message(&detail.map_or_else(|| status.to_owned(), |detail| format!("{status}: {detail}")), 200)
}

#[cfg(test)]
mod tests {
    use std::net::TcpListener;
    use std::sync::mpsc::{self, RecvTimeoutError};

    use super::*;

    #[test]
    fn no_secret_of_an_address_is_told() {
        for url in ["http://u:hunter2@[bad", "https://u:hunter2@h/", "http://u:hunter2@127.0.0.1:99999/", "u:hunter2@h"]
        {
            let told = of_url(url).err().unwrap().to_string();
            assert!(!told.contains("hunter2"), "{told}");
        }
    }

    #[test]
    fn an_answer_that_comes_byte_by_byte_is_not_waited_for_without_end() {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap();
        let (stop, stopped) = mpsc::channel::<()>();
        let server = std::thread::spawn(move || {
            let mut stream = listener.accept().unwrap().0;
            // What is left unread would end the connection as broken.
            let _ = stream.read(&mut [0; 1_024]);
            let goes_on = |_: &u32| stopped.recv_timeout(Duration::from_millis(20)) == Err(RecvTimeoutError::Timeout);
            (0..1_000).take_while(goes_on).for_each(|_| drop(stream.write_all(b"H")));
        });
        let port = Port { address, host: address.to_string(), path: "/".to_owned(), cert_file: None };
        let answer = ask(&port, "/healthz", Duration::from_millis(200));
        drop(stop);
        let kind = answer.as_ref().map_err(io::Error::kind);
        assert!(matches!(kind, Err(io::ErrorKind::TimedOut | io::ErrorKind::WouldBlock)), "{answer:?}");
        assert_eq!(why(&answer.unwrap_err()), " within 3 s");
        server.join().unwrap();
    }
}
