//! Parts of an array that share no flash: one can be written while readers have the others. Drives with NVM Sets have them, each
//! namespace in sets of its own.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::path::PathBuf;

use device::facts;

/// Where a member lies.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Place {
    /// What messages call the member.
    pub member: String,
    /// The drive, by whatever tells it from others.
    pub drive: String,
    /// The NVM Sets that it lies in.
    pub sets: BTreeSet<u32>,
}

/// Why an array has no parts that share no flash.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum PartsError {
    /// The NVM Sets of a member are not known: its name, and why.
    NotKnown(String, String),
    /// A member is the only one on its drive.
    Alone(String),
    /// Two members share an NVM Set.
    Shared(String, String),
    /// One drive has other than so many members: a member of it, how many it has, and how many the first drive has.
    Uneven(String, usize, usize),
}

impl fmt::Display for PartsError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("--sets separate: ")?;
        match self {
            Self::NotKnown(member, why) => write!(
                f,
                "the NVM Sets of {member} are not known ({why}): leave the option out, or record on namespaces that lie in sets"
            ),
            Self::Alone(member) => write!(
                f,
                "{member} is the only member on its drive, and one set is written while others are read: record on namespaces \
                 in two sets of it at least"
            ),
            Self::Shared(one, other) => write!(
                f,
                "{one} and {other} share an NVM Set: record on namespaces in sets of their own"
            ),
            Self::Uneven(member, has, first) => write!(
                f,
                "the drive of {member} has {has} members and another has {first}: record on as many namespaces of each drive"
            ),
        }
    }
}

impl std::error::Error for PartsError {}

/// The part of each member: the first ones of all drives by their sets, then the second ones.
///
/// # Errors
/// If there are not several parts, or they share flash.
pub fn parts(places: &[Place]) -> Result<Vec<u16>, PartsError> {
    let mut drives: BTreeMap<&str, Vec<usize>> = BTreeMap::new();
    for (at, place) in places.iter().enumerate() {
        drives.entry(&place.drive).or_default().push(at);
    }
    let each = drives.values().next().map_or(0, Vec::len);
    let mut parts = vec![0; places.len()];
    for mut on_drive in drives.into_values() {
        on_drive.sort_by_key(|&at| places[at].sets.first());
        let name = |at: usize| places[at].member.clone();
        for (rank, &at) in on_drive.iter().enumerate() {
            let before = &on_drive[..rank];
            let shares = |other: &&usize| !places[**other].sets.is_disjoint(&places[at].sets);
            if let Some(&other) = before.iter().find(shares) {
                return Err(PartsError::Shared(name(other), name(at)));
            }
            parts[at] = rank as u16;
        }
        match on_drive.len() {
            1 => return Err(PartsError::Alone(name(on_drive[0]))),
            has if has != each => return Err(PartsError::Uneven(name(on_drive[0]), has, each)),
            _ => {}
        }
    }
    Ok(parts)
}

/// Where members on real drives lie, as the drives tell.
///
/// # Errors
/// If one can't be asked, or is in no NVM Set.
pub fn of_real(members: &[PathBuf]) -> Result<Vec<Place>, PartsError> {
    let place = |path: &PathBuf| {
        let member = path.display().to_string();
        let not_known = |why: String| PartsError::NotKnown(member.clone(), why);
        let facts = facts::read(path).map_err(|error| not_known(error.to_string()))?;
        let nvme = facts.nvme.ok_or_else(|| not_known("it is no NVMe namespace".to_owned()))?;
        let Some(namespace) = nvme.namespace.known() else {
            return Err(not_known(nvme.namespace.to_string()));
        };
        let set = namespace.nvm_set_id.map(u32::from);
        let set = set.ok_or_else(|| not_known("its drive has none".to_owned()))?;
        let subsystem = facts.drive.nvme.and_then(|nvme| nvme.subsystem_nqn);
        let drive = subsystem.or(facts.drive.serial);
        let drive = drive.ok_or_else(|| not_known("its drive has no name".to_owned()))?;
        Ok(Place { member: member.clone(), drive, sets: BTreeSet::from([set]) })
    };
    members.iter().map(place).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn place(drive: &str, number: u32, sets: &[u32]) -> Place {
        let sets = sets.iter().copied().collect();
        Place { member: format!("{drive}n{number}"), drive: drive.to_owned(), sets }
    }

    #[test]
    fn each_part_has_a_member_of_every_drive_whatever_their_order() {
        let by_drive =
            [place("b", 1, &[1]), place("b", 2, &[2]), place("a", 2, &[2]), place("a", 1, &[1])];
        assert_eq!(parts(&by_drive), Ok(vec![0, 1, 1, 0]));
        let wide = [place("a", 1, &[0, 1]), place("a", 2, &[2]), place("a", 3, &[3])];
        assert_eq!(parts(&wide), Ok(vec![0, 1, 2]));
    }

    #[test]
    fn parts_that_share_flash_or_are_missing_are_refused_with_the_members_names() {
        for (places, names) in [
            (vec![place("a", 1, &[1])], vec!["an1"]),
            (vec![place("a", 1, &[1]), place("a", 2, &[0, 1])], vec!["an1", "an2"]),
            (
                [("a", 1), ("a", 2), ("b", 1), ("b", 2), ("b", 3)]
                    .map(|(drive, number)| place(drive, number, &[number]))
                    .to_vec(),
                vec!["bn1", "3", "2"],
            ),
        ] {
            let error = parts(&places).unwrap_err().to_string();
            assert!(names.iter().all(|name| error.contains(name)), "{error}");
        }
        let file = tempfile::NamedTempFile::new().unwrap();
        let error = of_real(&[file.path().to_owned()]).unwrap_err().to_string();
        assert!(error.contains("NVM Sets of") && error.contains("are not known"), "{error}");
    }
}
