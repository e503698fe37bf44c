//! `cargo xtask golden`: writes the media format's golden files. Their tests fail when the encoder's
//! output changes; making them anew is right only after `docs/format.md` has changed.

#[path = "../../crates/format/tests/golden/parity.rs"]
mod parity;
#[path = "../../crates/format/tests/golden/recipe.rs"]
mod recipe;

use std::fs;
use std::path::Path;

use anyhow::{Context, Result, bail};

/// `golden`.
#[derive(Debug, clap::Args)]
pub struct Arguments {
    /// Replace files that are there: the format has changed, on purpose.
    #[arg(long)]
    force: bool,
}

/// Writes the files beside their recipe.
///
/// # Errors
/// If one is there already, or can't be written.
pub fn run(arguments: &Arguments) -> Result<()> {
    let directory = Path::new(env!("CARGO_MANIFEST_DIR")).join("../crates/format/tests/golden");
    let plain = recipe::FILES.into_iter().zip(recipe::members());
    for (name, bytes) in plain.chain(parity::FILES.into_iter().zip(parity::members())) {
        let path = directory.join(name);
        if path.exists() && !arguments.force {
            bail!(
                "{} is there: golden files change only with docs/format.md; to replace them, give --force",
                path.display()
            );
        }
        fs::write(&path, &bytes).with_context(|| format!("writing {}", path.display()))?;
        println!("{}: {} bytes", path.display(), bytes.len());
    }
    Ok(())
}
