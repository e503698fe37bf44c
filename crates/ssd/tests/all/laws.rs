//! What must hold for every drive and every workload, faults that other simulators are known for, power cuts, and the cache in numbers.

mod cache;
mod commands;
mod conservation;
mod determinism;
mod erasing;
mod faults;
mod heat;
mod mapping;
mod placement;
mod power;
mod retries;
mod specs;
mod variation;
mod wear;
mod windows;
mod work;
