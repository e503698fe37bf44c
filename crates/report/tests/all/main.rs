//! The pages as a browser shows them, and what they say of measurements.

mod browser;
#[path = "../chromium/mod.rs"]
mod chromium;
mod measured;
mod measured_browser;
mod runs;
#[path = "../sample/mod.rs"]
mod sample;
