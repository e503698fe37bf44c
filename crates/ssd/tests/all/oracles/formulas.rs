//! What the literature says about uniform random writes of single units, as far as [`longtake_ssd::steady`] doesn't say it.

/// Spare area as physical over user units; then the write amplification of greedy with 64 and with 256 units a block (Desnoyers, SYSTOR
/// 2012), of FIFO (there, and Xiang and Kurkoski, arXiv 1110.4245), of the best of ten with 256 units a block (Van Houdt, SIGMETRICS 2013),
/// and of any block.
pub const TABLE: [(f64, [f64; 5]); 4] = [
    (1.07, [7.001, 7.596, 7.817, 7.828, 15.29]),
    (1.15, [3.799, 3.959, 4.016, 4.066, 7.667]),
    (1.28, [2.402, 2.461, 2.481, 2.520, 4.571]),
    (1.50, [1.681, 1.707, 1.716, 1.742, 3.000]),
];

/// Spare areas of a hot fifth and a cold rest, which are 1.2 together.
pub const ALPHA_HOT: f64 = 1.5;
pub const ALPHA_COLD: f64 = 1.125;

/// The share of the addresses that hold data when so many of the requests trim one that does, and the others write any (Frankie et
/// al., arXiv 1208.1794). Write amplification is that of a drive with so much less user data.
pub fn in_use(trims: f64) -> f64 {
    (1.0 - 2.0 * trims) / (1.0 - trims)
}

/// The write amplification of data that is kept apart: of each part's own spare area, by its share of the writes.
pub fn apart(parts: &[(f64, f64)], amplification: impl Fn(f64) -> f64) -> f64 {
    parts.iter().map(|&(writes, alpha)| writes * amplification(alpha)).sum()
}
