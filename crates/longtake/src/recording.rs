//! A recording: from a source's name and a target's to packets on media, with every loss accounted for.

pub mod feed;
pub mod holds;
pub mod observer;
pub mod options;
pub mod sources;
pub mod virtual_feed;
