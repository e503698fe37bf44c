//! Where measuring meets simulated drives: they are measured by the experiments that measure real ones, calibrated to a drive
//! that was measured, and held against published results. Experiments (`lab`) know drives as rigs alone; this room makes rigs of
//! simulated ones, and finds out whether names mean real drives or simulated ones.
//!
//! A measured drive's twin, in the steps that let a caller show progress and stop:
//!
//! ```no_run
//! use lab::Go;
//! use longtake_twin::{Budget, MeasuredDrive, Search};
//! use target::Profiles;
//!
//! let drive = MeasuredDrive::read("measured-nvme0n1".as_ref(), "mine", &Profiles::of_user())?;
//! let search = Search::new(&drive, None)?;
//! let budget = Budget { evaluations: 400, time: None };
//! let fitted = search.run(budget, &mut |_tried, _share_left| Go::On)?;
//! fitted.check()?;
//! println!("{}", fitted.profile().to_toml()?);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

#![forbid(unsafe_code)]

pub mod curves;
pub mod described;
pub mod fit;
pub mod guess;
pub mod held_out;
pub mod known;
pub mod model;
pub mod parts;
pub mod published;
pub mod replay;
pub mod results;
pub mod rig;
pub mod setup;
pub mod wishes;

pub use described::Described;
pub use fit::{FitError, Fitted, MeasuredDrive, Search};
pub use known::Known;
pub use model::Budget;
pub use replay::Replay;
pub use results::{OutputFolder, OutputFolderError};
pub use rig::{SimulatedDrives, SimulatedRig, SimulatedRigError};
pub use setup::{OpenRig, Setup, SetupError, SetupOptions};
pub use wishes::Wishes;
