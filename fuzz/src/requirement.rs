//! Any text as a requirement: what can be required is planned, and the arithmetic ends in numbers that can be told.

use std::sync::LazyLock;

use plan::{Candidate, Draft, plan};
use profile::library;

/// One that is measured and one that is made up.
static CANDIDATES: LazyLock<Vec<Candidate>> = LazyLock::new(|| {
    ["samsung-970-evo-plus-1tb", "ideal"]
        .map(|name| Candidate::new(library::get(name).expect("it is in the library"), None))
        .to_vec()
});

/// Reads and plans it.
pub fn run(bytes: &[u8]) {
    let Ok(text) = std::str::from_utf8(bytes) else { return };
    let draft = match Draft::from_toml(text) {
        Ok(draft) => draft,
        Err(error) => return assert!(!error.to_string().is_empty()),
    };
    if let Ok(printed) = draft.to_toml() {
        let again = Draft::from_toml(&printed).expect("what was printed reads");
        assert_eq!(again.to_toml().ok(), Some(printed));
    }
    match draft.check() {
        Err(error) => assert!(!error.to_string().is_empty()),
        Ok(requirement) => {
            assert!(requirement.held_s() >= 0.0 && requirement.mean_share() >= 0.0);
            let answer = plan(&requirement, &CANDIDATES);
            assert_eq!(answer.designs.len(), CANDIDATES.len());
            for design in &answer.designs {
                if let Some(array) = &design.array {
                    assert!(array.drives > 0);
                    assert!(array.take.stored_bytes_per_s.is_finite(), "{:?}", array.take);
                }
            }
        }
    }
}
