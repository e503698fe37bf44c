//! From series to findings: change points, dips, steady state. Nothing here knows where a series came from.
//!
//! Everything is a function of plain data, so that the same code judges a real drive and a simulated
//! one. Where a method draws at random it does so from a seed, and gives the same answer again.

//Xpub mod cause;
pub mod changes;
//Xpub mod compare;
//Xpub mod dips;
//Xpub mod fill;
mod noise;
//Xpub mod recovery;
//Xpub mod search;
pub mod series;
//Xpub mod steady_state;

//Xpub use cause::{Cause, Link, Sample};
pub use changes::{Change, ChangeOptions, Segment, Segmentation};
//Xpub use compare::{Comparison, ComparisonOptions, Verdict};
//Xpub use dips::{Dip, DipOptions, DipSummary, Dips};
//Xpub use fill::{Fill, FillInput, Finding};
//Xpub use recovery::{Burst, Recovery};
//Xpub use search::Search;
pub use series::{Point, Series, SeriesError};
//Xpub use steady_state::{SteadyState, SteadyStateOptions};
