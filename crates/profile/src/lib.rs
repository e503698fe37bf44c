//! What is known of a drive model, measured or published, each figure with its source.

#![forbid(unsafe_code)]
