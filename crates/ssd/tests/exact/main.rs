//! The simulated drive held to a slow reference that shares nothing with it.

mod queues;
mod reads;
