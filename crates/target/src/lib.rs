//! The names of drives: a path, a device, `sim:NAME` or `raid0:` with several of them becomes drives that are ready for a bank. The
//! one room that knows both real drives and simulated ones. It prints nothing: what a user should hear is returned, or handed to
//! the caller as it happens.
//! [`output`] does the same for the name of an output: it becomes a file that replaces nothing it must not.
//!
//! A command's targets are all real or all simulated, because real and virtual clocks differ:
//!
//! ```
//! use base::Bank;
//! use longtake_target::{Profiles, SimDrives, SimTarget, Uplink};
//!
//! let texts = ["sim:ideal:full*2".to_owned()];
//! let Some(targets) = SimTarget::all(&texts)? else { panic!("they are real: `RealDrives::look` takes their paths") };
//! let uplink: Uplink = "7GB/s".parse()?;
//! let drives = SimDrives::new(&targets, Some(uplink), &Profiles::of_user())?;
//! let bank = drives.bank()?;
//! assert_eq!(bank.drives()[1].name, "sim:ideal:full#2");
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

#![forbid(unsafe_code)]

pub mod array;
pub mod authorize;
pub mod bank;
pub mod facts;
pub mod name;
pub mod new_files;
pub mod output;
pub mod parts;
pub mod profiles;
pub mod real;
pub mod simulated;
pub mod striped;
mod uplink;

pub use authorize::{Refused, authorize, wear};
pub use bank::{AnyBank, SimDataBank};
pub use name::{Contents, Model, NameError, SimTarget};
pub use new_files::{NewFiles, NewFilesError};
pub use profiles::{Profiles, ProfilesError};
pub use real::{OpenError, RealDrives};
pub use simulated::{SimDrives, SimDrivesError};
pub use striped::StripedTarget;
pub use uplink::Uplink;
