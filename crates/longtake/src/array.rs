//! An array: opened, listed, read, protected, checked and mended.

pub mod open;
pub mod protect;
