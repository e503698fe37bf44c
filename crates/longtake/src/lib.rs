//! Longtake as a library: records packets and sensor streams onto drives, real or simulated, and gives them back.
//!
//! A [`Recording`] takes a source and a target, both named as on the command line, and [`Options`], whose defaults are those of the
//! program. [`run`](recording::Builder::run) records in the calling thread and ends with an account of every packet;
//! [`start`](recording::Builder::start) returns a handle that reports progress and stops the recording.
//!
//! ```no_run
//! use longtake::{Duration, Options, Recording};
//!
//! let options = Options { duration: Some(Duration::from_secs(60)), ..Options::default() };
//! let account = Recording::builder("udp:0.0.0.0:5000", "./array").options(options).run(&mut ())?;
//! println!("{} packets stored, {} lost", account.ledger.stored.packets, account.ledger.lost_unwanted().packets);
//! # Ok::<(), longtake::Error>(())
//! ```
//!
//! An [`Array`] is what was recorded on: it lists takes, extracts and replays packets, protects spans of time, checks, scrubs and
//! rebuilds members. The same code records on simulated drives in virtual time, which proves a plan without any hardware:
//!
//! ```
//! use std::ops::ControlFlow;
//!
//! use longtake::{Duration, Options, Recording, Selection};
//!
//! let options = Options { duration: Some(Duration::from_millis(100)), ..Options::default() };
//! let recording = Recording::builder("synthetic:500MB/s", "sim:ideal*4").options(options);
//! let mut account = recording.run(&mut ())?;
//!
//! let mut packets = 0;
//! let array = account.array.as_mut().expect("simulated drives leave their array");
//! array.extract(&Selection::default(), |_packet| {
//!     packets += 1;
//!     ControlFlow::Continue(())
//! })?;
//! assert_eq!(packets, account.ledger.stored.packets);
//! # Ok::<(), longtake::Error>(())
//! ```
//!
//! [`planning`] tells how many drives a rate needs, [`sweep`] computes many designs of arrays over all cores, and [`json`] writes what the library returns as the program does with
//! `--json`, [`text`] as it does without. The library prints nothing, keeps the privileges of its caller unless it is asked to give them up
//! ([`recording::Privileges`]), and ends its threads and its control socket with the recording.

#![forbid(unsafe_code)]

pub mod array;
pub mod control;
mod error;
pub mod extcap;
mod flow_keys;
pub mod instant;
pub mod json;
pub mod metrics;
pub mod names;
pub mod planning;
pub mod privileges;
pub mod recording;
mod remark;
pub mod service_manager;
pub mod sweep;
pub mod text;

pub use array::{Array, FileFormat, Selection};
pub use error::{Error, Result};
pub use recording::{Options, Recording};
pub use remark::Remark;

pub use base::{ByteSize, Duration, Rate, Timestamp};
pub use format::{Count, Interface, Ledger};
pub use recorder::TimeRange;
pub use source::{synthetic, traffic};
pub use uuid::Uuid;
