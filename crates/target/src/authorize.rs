//! Proof that several drives may be written, and what writing costs them.

use std::fmt;
use std::path::Path;

use device::identity::{self, Kind};
use device::safety::{self, Authorized, Purpose, Refusal};

/// Why targets may not be written: every reason, of all of them.
#[derive(Debug)]
pub struct Refused(pub Vec<Refusal>);

impl fmt::Display for Refused {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let refusals: Vec<String> = self.0.iter().map(ToString::to_string).collect();
        write!(f, "nothing was written:\n  {}", refusals.join("\n  "))
    }
}

impl std::error::Error for Refused {}

/// Proof for every target that it may be written, or every reason why not. A dry run inspects only: it claims no drive, and
/// gives None for each.
///
/// # Errors
/// [`Refused`] with all refusals.
pub fn authorize<P: AsRef<Path>>(
    targets: &[P],
    confirmations: &[String],
    purpose: Purpose,
    dry_run: bool,
) -> Result<Vec<Option<Authorized>>, Refused> {
    let mut proofs = Vec::new();
    let mut refusals = Vec::new();
    for target in targets {
        let target = target.as_ref();
        match safety::authorize_for(target, confirmations, purpose) {
            Ok(proof) if dry_run => {
                drop(proof);
                proofs.push(None);
            }
            Ok(proof) => proofs.push(Some(proof)),
            Err(found) => refusals.extend(found),
        }
    }
    if !refusals.is_empty() {
        return Err(Refused(refusals));
    }
    Ok(proofs)
}

/// The share of a drive's life that writing so many bytes costs, in words; None for a file.
pub fn wear(target: &Path, bytes: u64) -> Option<String> {
    let drive = identity::describe(target).ok()?;
    (drive.kind != Kind::File).then(|| safety::cost(&drive, bytes, None).to_string())
}
