//! The service, asked over sockets.

mod access;
mod audit;
#[path = "../../../report/tests/chromium/mod.rs"]
#[allow(dead_code, reason = "other tests use the rest of it")]
mod chromium;
mod client_certificates;
mod dashboard;
mod document;
mod events;
mod flows;
mod harness;
mod hostile;
mod limits;
mod listing;
mod metrics;
mod monitoring;
mod packets;
mod pcap_over_ip;
mod protected;
mod steno;
mod tls;
