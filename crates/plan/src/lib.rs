//! How many drives a data rate needs: arithmetic on what is known of drives, and the recorder's own code run on simulated
//! ones for the whole mission in virtual time. Pure: requirements and profiles in, answers out.

#![forbid(unsafe_code)]
