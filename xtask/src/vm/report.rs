//! What the guest tells the host over its second serial port: lines that it says, whole files, and at
//! last how its script ended.
//!
//! A line is `say TEXT`, `file NAME BYTES` with that many bytes behind it, or `end STATUS`.

use std::io::{BufRead, Read};

use anyhow::{Context, Result, bail};

/// The longest file that is taken from a guest: what a serial port carries in a few minutes.
const FILE_BYTES_MAX: u64 = 64 << 20;

/// One thing that the guest told.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Told {
    /// A line of the script's, for the scenario to act on.
    Said(String),
    /// A file.
    File {
        /// Its name, without folders.
        name: String,
        /// All of it.
        bytes: Vec<u8>,
    },
    /// The script's exit status.
    Ended(i32),
}

/// The next thing; None when the guest is gone.
///
/// # Errors
/// If it is none of what a guest may tell.
pub fn next(from: &mut impl BufRead) -> Result<Option<Told>> {
    let mut line = String::new();
    if from.read_line(&mut line).context("listening to the guest")? == 0 {
        return Ok(None);
    }
    let line = line.trim_end();
    let (word, rest) = line.split_once(' ').unwrap_or((line, ""));
    Ok(Some(match word {
        "say" => Told::Said(rest.to_owned()),
        "end" => Told::Ended(rest.parse().with_context(|| format!("the guest said {line:?}"))?),
        "file" => file(from, rest).with_context(|| format!("the guest said {line:?}"))?,
        _ => bail!("the guest said {line:?}, which is none of say, file and end"),
    }))
}

fn file(from: &mut impl BufRead, rest: &str) -> Result<Told> {
    let (name, length) = rest.rsplit_once(' ').context("a file has a name and a length")?;
    let length: u64 = length.parse()?;
    if name.contains('/') || name.starts_with('.') || name.is_empty() {
        bail!("a file's name has no folders and doesn't start with a dot");
    }
    if length > FILE_BYTES_MAX {
        bail!("a file has {FILE_BYTES_MAX} bytes at most");
    }
    let mut bytes = Vec::new();
    from.take(length).read_to_end(&mut bytes)?;
    if bytes.len() as u64 != length {
        bail!("the guest was gone after {} bytes", bytes.len());
    }
    Ok(Told::File { name: name.to_owned(), bytes })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_and_files_come_in_turn() {
        let mut from = &b"say ready now\nfile a.json 3\n{}\nend 0\n"[..];
        assert_eq!(next(&mut from).unwrap(), Some(Told::Said("ready now".to_owned())));
        let file = Told::File { name: "a.json".to_owned(), bytes: b"{}\n".to_vec() };
        assert_eq!(next(&mut from).unwrap(), Some(file));
        assert_eq!(next(&mut from).unwrap(), Some(Told::Ended(0)));
        assert_eq!(next(&mut from).unwrap(), None);
    }

    #[test]
    fn what_no_guest_should_say_is_refused() {
        for bad in [
            "file ../../etc/passwd 3\nabc",
            "file short 10\nabc",
            "file vast 99999999999\n",
            "end well\n",
            "Kernel panic\n",
        ] {
            assert!(next(&mut bad.as_bytes()).is_err(), "{bad}");
        }
    }
}
