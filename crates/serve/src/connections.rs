//! Connections, encrypted or not: how many there are, and how long a client may take.

use std::convert::Infallible;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use hyper::server::conn::http1;
use hyper::service::{Service, service_fn};
use hyper_util::rt::{TokioIo, TokioTimer};
use hyper_util::service::TowerToHyperService;
use nix::sys::socket::setsockopt;
use nix::sys::socket::sockopt::TcpUserTimeout;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::Semaphore;
use tokio::time::timeout;
use tokio_rustls::TlsAcceptor;

use crate::Limits;
use crate::client_certificate::ClientCertificate;
use crate::enter::Peer;
use crate::tls::Tls;

/// Longest head of a request in bytes.
const HEAD_BYTES_MAX: usize = 16 << 10;

/// Headers of a request at most.
const HEADERS_MAX: usize = 64;

/// Why a connection ends early.
type Reason = Box<dyn std::error::Error + Send + Sync>;

/// Time until the next connection is accepted if one could not be, for lack of file descriptors.
pub const PAUSE: Duration = Duration::from_millis(100);

/// Serves connections for ever; with `tls`, none that is not encrypted.
pub async fn serve(
    listener: TcpListener,
    tls: Option<Arc<Tls>>,
    router: Router,
    limits: &Limits,
) -> Infallible {
    let room = Arc::new(Semaphore::new(limits.connections_max));
    loop {
        // It is never closed.
        let place = Arc::clone(&room).acquire_owned().await.ok();
        let Ok((stream, peer)) = listener.accept().await else {
            tokio::time::sleep(PAUSE).await;
            continue;
        };
        let (router, tls, limits) = (router.clone(), tls.clone(), *limits);
        tokio::spawn(async move {
            let _place = place;
            // A connection that breaks off is its client's affair.
            connection(stream, peer, tls, router, &limits).await.ok();
        });
    }
}

async fn connection(
    stream: TcpStream,
    peer: SocketAddr,
    tls: Option<Arc<Tls>>,
    router: Router,
    limits: &Limits,
) -> Result<(), Reason> {
    // The kernel closes the connection of a client that accepts nothing for so long.
    let stalled = u32::try_from(limits.stalled_max.as_millis()).unwrap_or(u32::MAX);
    setsockopt(&stream, TcpUserTimeout, &stalled)?;
    stream.set_nodelay(true)?;
    match tls {
        Some(tls) => {
            let acceptor = TlsAcceptor::from(tls.now().config);
            let stream = timeout(limits.head_max, acceptor.accept(stream)).await??;
            let shown = stream.get_ref().1.peer_certificates();
            let certificate = shown.and_then(ClientCertificate::new);
            requests(stream, peer, certificate, router, limits).await
        }
        None => requests(stream, peer, None, router, limits).await,
    }
}

/// Answers the requests of a connection.
async fn requests(
    stream: impl AsyncRead + AsyncWrite + Unpin + Send + 'static,
    peer: SocketAddr,
    certificate: Option<ClientCertificate>,
    router: Router,
    limits: &Limits,
) -> Result<(), Reason> {
    let router = TowerToHyperService::new(router);
    let answer = service_fn(move |mut request: hyper::Request<_>| {
        request.extensions_mut().insert(Peer(peer));
        if let Some(certificate) = &certificate {
            request.extensions_mut().insert(certificate.clone());
        }
        router.call(request)
    });
    http1::Builder::new()
        .timer(TokioTimer::new())
        .header_read_timeout(limits.head_max)
        .max_headers(HEADERS_MAX)
        .max_buf_size(HEAD_BYTES_MAX)
        .serve_connection(TokioIo::new(stream), answer)
        .await?;
    Ok(())
}
