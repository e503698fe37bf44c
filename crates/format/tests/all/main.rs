//! The format as other programs meet it: golden members, the rules of `docs/format.md`, members cut short.

// Under the name that every other crate knows it by: the golden recipe is shared with one.
extern crate longtake_format as format;

mod golden;
mod rules;
mod truncated;
