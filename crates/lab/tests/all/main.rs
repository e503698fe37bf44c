//! The tests of experiments and their analysis as one program: what they share is built once.

mod analysis_changes;
mod analysis_dips;
mod analysis_fill;
mod analysis_properties;
mod experiments_on_a_file;
mod synthetic;
