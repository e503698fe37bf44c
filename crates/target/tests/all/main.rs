//! Integration tests of the room, one program so that linking is paid once.

mod outputs;
mod sim_identity;
