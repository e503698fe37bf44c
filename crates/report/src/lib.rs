//! Measurements as documents: self-contained HTML, SVG of each picture, CSV and Parquet series.

#![forbid(unsafe_code)]
