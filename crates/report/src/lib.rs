//! Results as documents: self-contained HTML, SVG of each picture, CSV and Parquet series; text and tables for a terminal, JSON.
//!
//! A caller fills a [`document::Document`] with words, numbers and [`picture::Picture`]s;
//! [`html::page`] makes one file of it that needs nothing else, [`svg::draw`] draws a picture alone.

#![forbid(unsafe_code)]

#[cfg(test)]
extern crate self as longtake_report;

pub mod axis;
pub mod document;
pub mod drive;
pub mod echarts;
mod escape;
pub mod html;
pub mod ledger;
pub mod measured;
pub mod measurement;
pub mod mission;
pub mod palette;
pub mod picture;
pub mod planned;
pub mod profiles;
pub mod replayed;
pub mod reproduced;
pub mod rest;
pub mod series;
pub mod sparkline;
pub mod svg;
pub mod swept;
pub mod text;
pub mod thin;

#[cfg(test)]
#[path = "../tests/sample/mod.rs"]
mod sample;
