//! Tests of the library as a program that depends on it would use it, one program so that linking is paid once.

mod array_create;
mod array_degraded;
mod array_extract;
mod array_recording;
mod examples;
mod harness;
mod options;
mod producer;
mod separate_sets;
mod sweep;
