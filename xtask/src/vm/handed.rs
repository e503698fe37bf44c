//! The files that a guest handed over, by name.

use std::collections::BTreeMap;

use anyhow::{Context, Result};
use serde_json::Value;

/// Contents of the files, by name.
#[derive(Clone, Debug, Default)]
pub struct Files(pub BTreeMap<String, Vec<u8>>);

impl Files {
    /// One as text.
    ///
    /// # Errors
    /// If the guest handed over none of that name, or it is no text.
    pub fn text(&self, name: &str) -> Result<&str> {
        let bytes = self.0.get(name).with_context(|| format!("the guest handed over no {name}"))?;
        std::str::from_utf8(bytes).with_context(|| format!("{name} is no text"))
    }

    /// One as JSON.
    ///
    /// # Errors
    /// As [`Files::text`], or if it is no JSON.
    pub fn json(&self, name: &str) -> Result<Value> {
        serde_json::from_str(self.text(name)?).with_context(|| format!("{name} is no JSON"))
    }

    /// One that holds JSON line by line, as far as they are whole.
    ///
    /// # Errors
    /// As [`Files::text`].
    pub fn json_lines(&self, name: &str) -> Result<Vec<Value>> {
        Ok(self.text(name)?.lines().filter_map(|line| serde_json::from_str(line).ok()).collect())
    }

    /// How a command ended that the guest ran by `run NAME`, and what it said to standard error.
    ///
    /// # Errors
    /// If it wasn't run.
    pub fn ended(&self, name: &str) -> Result<(i32, &str)> {
        let text = self.text(&format!("{name}.errors"))?;
        let (errors, code) = text
            .rsplit_once("exit code ")
            .with_context(|| format!("{name} has no exit code: {text}"))?;
        Ok((code.trim().parse()?, errors))
    }

    /// That a command ended as it should.
    ///
    /// # Errors
    /// With what it said, if it did not.
    pub fn expect_code(&self, name: &str, expected: i32) -> Result<&str> {
        let (code, errors) = self.ended(name)?;
        anyhow::ensure!(
            code == expected,
            "{name} ended with exit code {code}, not {expected}: {errors}"
        );
        Ok(errors)
    }
}
