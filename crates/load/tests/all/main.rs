//! The tests of workloads as one program: what they share is built once.

mod engine;
mod fio;
mod fio_json;
mod hdr_log;
mod trace;
