//! From series to findings: change points, dips, steady state. Nothing here knows where a series came from.
