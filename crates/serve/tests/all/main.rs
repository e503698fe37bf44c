//! The service, asked over sockets.

mod access;
mod audit;
mod document;
mod flows;
mod harness;
mod hostile;
mod limits;
mod listing;
mod metrics;
mod packets;
mod protected;
mod tls;
