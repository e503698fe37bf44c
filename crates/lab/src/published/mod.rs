//! Published results that the product is held against: what five documents claim, and what the same experiments come to on
//! simulated drives of the same models.
//!
//! No figure is special-cased: a claim states what was published, a group runs the experiments on drives that somebody else
//! makes, and what differs is shown with its size and, where it is believed to be known, its reason. What is as published counts as
//! evidence only if no parameter that it depends on was chosen with it in view.

mod basis;
mod claim;
mod group;
mod lnk;
mod mix;
mod plot;
mod qos;
mod rec;
mod stage;
mod str;
mod wrapping;
mod writers;

pub use basis::{Basis, Fitted, UsedParameter};
pub use claim::{
    Claim, ClaimVerdict, Comparison, END_TOLERANCE, Explanation, Found, Published, Row, TOLERANCE,
};
pub use group::{ChoiceError, FigureFit, Group, HeldOut, Reproduced, SetParameter};
pub use plot::{Curve, Plot, PlotAxis, Shape};
pub use stage::{Contents, Drives, DrivesNeeded, Effort, Ring, RingOutcome, Stage};
