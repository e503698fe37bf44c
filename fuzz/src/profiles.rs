//! Any text as a drive's profile: what is one reads back as it is written, and what can be simulated has flash enough
//! for its capacity.

use profile::Profile;
use ssd::Spec;

/// Reads it.
pub fn run(bytes: &[u8]) {
    let Ok(text) = std::str::from_utf8(bytes) else { return };
    let profile = match Profile::from_toml(text) {
        Ok(profile) => profile,
        Err(error) => return assert!(!error.to_string().is_empty()),
    };
    let printed = profile.to_toml().expect("what was read can be written");
    let again = Profile::from_toml(&printed).expect("what was written reads");
    assert_eq!(again.to_toml().ok(), Some(printed));
    let spec = match Spec::from_profile(&profile) {
        Ok(spec) => spec,
        Err(error) => return assert!(!error.to_string().is_empty()),
    };
    match spec.check() {
        Err(error) => assert!(!error.to_string().is_empty()),
        Ok(()) => {
            assert!(spec.physical_bytes() >= spec.capacity_bytes);
            assert!(spec.native_write_bytes_per_s() > 0.0);
            spec.coarsened().check().expect("a coarser one can be simulated too");
        }
    }
}
