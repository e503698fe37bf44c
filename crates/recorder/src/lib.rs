//! The recording state machine: placement, ring, trim, ledger, recovery. No I/O.
#![forbid(unsafe_code)]
