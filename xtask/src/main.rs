//! The project's own chores: benchmarks and long tests.
fn main() {}
