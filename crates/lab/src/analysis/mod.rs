//! From series to findings: change points, dips, steady state. Nothing here knows where a series came from.
//!
//! Everything is a function of plain data, so that the same code judges a real drive and a simulated
//! one. Where a method draws at random it does so from a seed, and gives the same answer again.

pub mod cause;
pub mod changes;
pub mod compare;
pub mod dips;
pub mod fill;
mod noise;
pub mod recovery;
pub mod search;
pub mod series;
pub mod steady_state;

pub use cause::{Cause, Link, Sample};
pub use changes::{Change, ChangeOptions, Segment, Segmentation};
pub use compare::{Comparison, ComparisonOptions, ComparisonVerdict};
pub use dips::{Dip, DipOptions, DipSummary, Dips};
pub use fill::{Fill, FillInput, Sought};
pub use recovery::{Burst, Recovery};
pub use search::Search;
pub use series::{Point, Series, SeriesError};
pub use steady_state::{SteadyState, SteadyStateOptions};
