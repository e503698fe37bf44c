//! Connections: how many there are, and how long a client may take.

use std::convert::Infallible;
use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use hyper::server::conn::http1;
use hyper_util::rt::{TokioIo, TokioTimer};
use hyper_util::service::TowerToHyperService;
use nix::sys::socket::setsockopt;
use nix::sys::socket::sockopt::TcpUserTimeout;
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::Semaphore;

use crate::Limits;

/// Longest head of a request in bytes.
const HEAD_BYTES_MAX: usize = 16 << 10;

/// Headers of a request at most.
const HEADERS_MAX: usize = 64;

/// Time until the next connection is accepted if one could not be, for lack of file descriptors.
pub const PAUSE: Duration = Duration::from_millis(100);

/// Serves connections for ever.
pub async fn serve(listener: TcpListener, router: Router, limits: &Limits) -> Infallible {
    let room = Arc::new(Semaphore::new(limits.connections_max));
    loop {
        // It is never closed.
        let place = Arc::clone(&room).acquire_owned().await.ok();
        let Ok((stream, _)) = listener.accept().await else {
            tokio::time::sleep(PAUSE).await;
            continue;
        };
        let (router, limits) = (router.clone(), *limits);
        tokio::spawn(async move {
            let _place = place;
            // A connection that breaks off is its client's affair.
            connection(stream, router, &limits).await.ok();
        });
    }
}

async fn connection(
    stream: TcpStream,
    router: Router,
    limits: &Limits,
) -> Result<(), Box<dyn std::error::Error + Send + Sync>> {
    // The kernel closes the connection of a client that accepts nothing for so long.
    let stalled = u32::try_from(limits.stalled_max.as_millis()).unwrap_or(u32::MAX);
    setsockopt(&stream, TcpUserTimeout, &stalled)?;
    stream.set_nodelay(true)?;
    http1::Builder::new()
        .timer(TokioTimer::new())
        .header_read_timeout(limits.head_max)
        .max_headers(HEADERS_MAX)
        .max_buf_size(HEAD_BYTES_MAX)
        .serve_connection(TokioIo::new(stream), TowerToHyperService::new(router))
        .await?;
    Ok(())
}
