//! Accepts connections, within bounds, and serves HTTP/1.1 on each. A port that cannot be had stops no job: it is tried again. The one
//! file of `web` that waits.

use std::convert::Infallible;
use std::net::SocketAddr;
use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;

use hyper::Request;
use hyper::body::Incoming;
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::{TokioIo, TokioTimer};
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::{TcpListener, TcpStream};
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use crate::web::bodies;
use crate::web::door::{Door, Ends};
use crate::web::seats::{Seat, Seats};
use crate::web::site::Site;
use crate::web::tls::Certificate;

/// Connections at once. The next one waits, or takes the place of one that does nothing.
const CONNECTIONS: usize = 256;
/// For the head of a request, from when it could begin: an idle connection ends with it, too. For the handshake of TLS, the same.
const HEAD: Duration = Duration::from_secs(10);
/// Bytes of the head of a request.
const LARGEST_HEAD: usize = 16 * 1_024;
/// Between two tries to listen.
const AGAIN: Duration = Duration::from_secs(10);
/// After an accept that failed: the next would fail as well while there are no more files to be had.
const PAUSE: Duration = Duration::from_secs(1);
/// For what is being answered when everything ends.
const LAST_ANSWERS: Duration = Duration::from_secs(2);

/// A port that is being served.
#[derive(Debug)]
pub struct Listening {
    leaving: CancellationToken,
    end: CancellationToken,
    tasks: TaskTracker,
}

impl Listening {
    /// Ends every connection: those with a request may answer it, within two seconds, and streams say goodbye.
    pub async fn stop(self) {
        self.leaving.cancel();
        self.end.cancel();
        self.tasks.close();
        let _ = tokio::time::timeout(LAST_ANSWERS, self.tasks.wait()).await;
    }
}

/// Serves a site on its address from now on; through TLS where there is a certificate.
pub fn listen(site: Arc<Site>, certificate: Option<Arc<Certificate>>) -> Listening {
    let (end, tasks) = (CancellationToken::new(), TaskTracker::new());
    let (address, leaving) = (site.http.listen, site.leaving.clone());
    let serving = Serving { door: Door::of(site), certificate, end: end.clone() };
    tasks.spawn(serve(Arc::new(serving), address, tasks.clone()));
    Listening { leaving, end, tasks }
}

/// What each connection needs.
struct Serving {
    door: Door,
    certificate: Option<Arc<Certificate>>,
    end: CancellationToken,
}

async fn serve(serving: Arc<Serving>, address: SocketAddr, tasks: TaskTracker) {
    let served = async {
        let listener = bind(address).await;
        let (seats, mut failing) = (Seats::new(CONNECTIONS), false);
        loop {
            match listener.accept().await {
                Ok((stream, peer)) => {
                    failing = false;
                    let Some(seat) = seats.take().await else { return };
                    let serving = Arc::clone(&serving);
                    tasks.spawn(async move { serving.take(stream, peer, &seat).await });
                }
                Err(error) => {
                    if !std::mem::replace(&mut failing, true) {
                        tracing::warn!(%address, %error, "no connection can be accepted");
                    }
                    rest(PAUSE).await;
                }
            }
        }
    };
    serving.end.run_until_cancelled(served).await;
}

/// Listens, as soon as that can be.
async fn bind(address: SocketAddr) -> TcpListener {
    let mut told = false;
    loop {
        match TcpListener::bind(address).await {
            Ok(listener) => {
                let address = listener.local_addr().unwrap_or(address);
                tracing::info!(%address, "listens for HTTP");
                return listener;
            }
            Err(error) => {
                if !std::mem::replace(&mut told, true) {
                    tracing::error!(%address, %error, "cannot listen for HTTP: tries again every 10 s, and the jobs go on");
                }
                rest(AGAIN).await;
            }
        }
    }
}

#[allow(clippy::disallowed_methods, reason = "between two tries of the system, which tells nobody when it can")]
async fn rest(span: Duration) {
    tokio::time::sleep(span).await;
}

impl Serving {
    /// Serves one connection until it ends, loses its place, or everything ends.
    async fn take(&self, stream: TcpStream, peer: SocketAddr, seat: &Seat) {
        // Of a connection that is gone already.
        let Ok(local) = stream.local_addr() else { return };
        let ends = Ends { peer, local: local.ip() };
        let Some(certificate) = &self.certificate else { return self.converse(stream, ends, seat).await };
        let handshake = tokio::time::timeout(HEAD, certificate.acceptor().accept(stream));
        // What speaks no TLS is its client's matter.
        let spoken = tokio::select! {
            spoken = handshake => spoken,
            () = seat.end.cancelled() => return,
            () = self.end.cancelled() => return,
        };
        if let Ok(Ok(stream)) = spoken {
            self.converse(stream, ends, seat).await;
        }
    }

    async fn converse(&self, stream: impl AsyncRead + AsyncWrite + Unpin, ends: Ends, seat: &Seat) {
        let door = &self.door;
        let service = service_fn(move |request: Request<Incoming>| async move {
            let (request, answering) = bodies::arrive(seat, request);
            let response = door.answer(ends, request).await;
            Ok::<_, Infallible>(bodies::answer(answering, response))
        });
        let connection = http1::Builder::new()
            .timer(TokioTimer::new())
            .header_read_timeout(HEAD)
            .max_buf_size(LARGEST_HEAD)
            .serve_connection(TokioIo::new(stream), service);
        let mut connection = pin!(connection);
        // How a connection broke off is its client's matter.
        tokio::select! {
            _ = connection.as_mut() => {}
            () = seat.end.cancelled() => {
                connection.as_mut().graceful_shutdown();
                let _ = tokio::time::timeout(seat.farewell(), connection).await;
            }
            () = self.end.cancelled() => {
                connection.as_mut().graceful_shutdown();
                let _ = tokio::time::timeout(LAST_ANSWERS, connection).await;
            }
        }
    }
}
