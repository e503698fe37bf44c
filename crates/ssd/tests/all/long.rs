//! Whether tests are to take as long as they need.

/// Whether the slow, full-length form of each test was asked for with `LONGTAKE_LONG=1`.
pub fn long() -> bool {
    std::env::var_os("LONGTAKE_LONG").is_some_and(|value| value == "1")
}
