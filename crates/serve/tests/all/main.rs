//! The service, asked over sockets.

mod document;
mod flows;
mod harness;
mod hostile;
mod limits;
mod listing;
mod metrics;
mod packets;
