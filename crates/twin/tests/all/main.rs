//! Findings about simulated drives, held against what other simulations of the same drives show.

mod links;
