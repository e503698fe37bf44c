//! The recorder's laws on hostile drives, by seed; and the hostile bank as any other bank.

mod conformance;
mod lost_writes;
mod seeds;
