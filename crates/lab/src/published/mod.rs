//! Published results that simulated drives are compared with: the claims of five documents, and the results of the same experiments on
//! simulated drives of the same models.
//!
//! No figure is treated specially. A claim states what was published, and a group runs the experiments on drives that the caller
//! provides. Each difference is shown with its size and, if it is believed to be known, its reason. An agreement counts as evidence only
//! if no parameter that it depends on was chosen to reach it.

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
