//! What striped sets are called: `raid0:TARGET[,TARGET...][,stripe=64KiB]`, and the same with `raid5:` and `raid6:`.

use std::fmt;
use std::fs;

use base::ByteSize;
use base::striped::{Level, STRIPE_BYTES, StripedSet};

use crate::name::{NameError, SimTarget};

/// What stands before a size of stripes.
const STRIPE: &str = "stripe=";

/// Largest stripe in bytes. Members take no longer commands.
const STRIPE_BYTES_MAX: u64 = 16 << 20;

/// Several drives as one, to be measured.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StripedTarget {
    /// With or without parity.
    pub level: Level,
    /// Bytes of a stripe.
    pub stripe_bytes: u64,
    /// The members' targets. One may name several simulated drives.
    pub members: Vec<String>,
}

impl StripedTarget {
    /// Whether a text is meant as a striped set.
    pub fn is_meant(text: &str) -> bool {
        level(text).is_some()
    }

    /// The striped set that a command's targets are; None if they name no set.
    ///
    /// # Errors
    /// [`NameError`] if it can't be understood, or isn't the only target.
    pub fn only(texts: &[String]) -> Result<Option<Self>, NameError> {
        let Some(text) = texts.iter().find(|text| Self::is_meant(text)) else { return Ok(None) };
        if texts.len() > 1 {
            return Err(NameError::SetWithOthers { target: text.clone() });
        }
        Self::parse(text).map(Some)
    }

    fn parse(text: &str) -> Result<Self, NameError> {
        let wrong = |part: &str, wanted| {
            let (target, part) = (text.to_owned(), part.to_owned());
            Err(NameError::Part { target, part, wanted })
        };
        let Some((level, rest)) = level(text) else {
            return wrong(text, "a striped set begins with raid0:, raid5: or raid6:");
        };
        let mut set = Self { level, stripe_bytes: STRIPE_BYTES, members: Vec::new() };
        for part in rest.split(',') {
            if let Some(size) = part.strip_prefix(STRIPE) {
                let bytes = size.parse::<ByteSize>().map(|size| size.0).ok();
                match bytes
                    .filter(|bytes| bytes % 512 == 0 && (1..=STRIPE_BYTES_MAX).contains(bytes))
                {
                    Some(bytes) => set.stripe_bytes = bytes,
                    None => return wrong(part, "a stripe is a multiple of 512 bytes, up to 16MiB"),
                }
            } else if Self::is_meant(part) {
                return wrong(part, "the members of a striped set are drives");
            } else if part.is_empty() {
                return wrong(rest, "name the members, with commas between them, or TARGET*6");
            } else if set.members.iter().any(|other| same_file(other, part)) {
                return wrong(part, "it is a member already, and members are different drives");
            } else {
                set.members.push(part.to_owned());
            }
        }
        if set.members.is_empty() {
            return wrong(rest, "name the members, with commas between them, or TARGET*6");
        }
        Ok(set)
    }

    /// The set as the bank takes it.
    pub fn set(&self) -> StripedSet {
        let Self { level, stripe_bytes, .. } = *self;
        StripedSet { name: self.to_string(), level, stripe_bytes }
    }
}

fn level(text: &str) -> Option<(Level, &str)> {
    let (scheme, rest) = text.split_once(':')?;
    Level::ALL.into_iter().find(|level| level.name() == scheme).map(|level| (level, rest))
}

impl fmt::Display for StripedTarget {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}", self.level, self.members.join(","))?;
        if self.stripe_bytes != STRIPE_BYTES {
            write!(f, ",{STRIPE}{}", size(self.stripe_bytes))?;
        }
        Ok(())
    }
}

/// Whether two names of real drives mean one. Simulated ones are told apart when they are made.
fn same_file(one: &str, other: &str) -> bool {
    let path = |text: &str| fs::canonicalize(text).unwrap_or_else(|_| text.into());
    !SimTarget::is_meant(one) && path(one) == path(other)
}

/// A size of stripes as it is given: `64KiB`.
fn size(bytes: u64) -> String {
    if bytes.is_multiple_of(1 << 10) { format!("{}KiB", bytes >> 10) } else { format!("{bytes}") }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn only(texts: &[&str]) -> Result<Option<StripedTarget>, String> {
        let texts: Vec<String> = texts.iter().map(|text| (*text).to_owned()).collect();
        StripedTarget::only(&texts).map_err(|error| error.to_string())
    }

    #[test]
    fn level_members_and_stripes_are_understood_and_said_again() {
        for (text, level, stripe_bytes, members) in [
            ("raid0:sim:ideal*6", Level::Raid0, 64 << 10, &["sim:ideal*6"][..]),
            ("raid5:/dev/a,/dev/b,c.bin", Level::Raid5, 64 << 10, &["/dev/a", "/dev/b", "c.bin"]),
            (
                "raid6:sim:a*2,sim:b*2,stripe=1024KiB",
                Level::Raid6,
                1 << 20,
                &["sim:a*2", "sim:b*2"],
            ),
            ("raid0:a,b,stripe=512", Level::Raid0, 512, &["a", "b"]),
        ] {
            let members = members.iter().map(|member| (*member).to_owned()).collect();
            let set = StripedTarget { level, stripe_bytes, members };
            assert_eq!(only(&[text]), Ok(Some(set.clone())));
            assert_eq!(set.to_string(), text);
        }
        assert_eq!(only(&["sim:ideal", "/dev/raid0:x", "raid10:a"]), Ok(None));
    }

    #[test]
    fn what_is_no_set_is_refused_with_what_would_be() {
        for (text, words) in [
            ("raid0:", "name the members"),
            ("raid0:a,,b", "name the members"),
            ("raid5:stripe=64KiB", "name the members"),
            ("raid5:a,b,c,stripe=1000", "multiple of 512 bytes"),
            ("raid5:a,b,c,stripe=32MiB", "multiple of 512 bytes"),
            ("raid5:a,b,c,stripe=0", "multiple of 512 bytes"),
            ("raid0:a,b,a", "'a' is not valid: it is a member already"),
            ("raid0:a,raid5:b", "'raid5:b' is not valid"),
        ] {
            let error = only(&[text]).unwrap_err();
            assert!(error.contains(words), "{text}: {error}");
        }
        let error = only(&["sim:a", "raid0:sim:a*2"]).unwrap_err();
        assert!(error.contains("raid0:sim:a*2 is one drive to a command"), "{error}");
    }

    #[test]
    fn a_command_that_takes_no_sets_names_the_remedy() {
        let error = SimTarget::all(&["raid0:sim:a*6".to_owned()]).unwrap_err().to_string();
        assert!(error.contains("only `longtake measure` takes"), "{error}");
        assert!(error.contains("name its members") && error.contains("--parity"), "{error}");
    }
}
