//! Groups: each document's claims, its experiments, and what they come to.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};

use super::basis::{Basis, UsedParameter};
use super::claim::{Claim, Comparison, Row};
use super::plot::Plot;
use super::stage::Stage;
use super::{lnk, mix, qos, rec, str as streaming};
use crate::lab::LabError;

/// A document.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "UPPERCASE")]
pub enum Group {
    /// A data recorder on NVMe drives.
    Rec,
    /// NVM Sets.
    Qos,
    /// Streaming applications.
    Str,
    /// PCIe generations and lanes.
    Lnk,
    /// Block sizes and mixes.
    Mix,
}

/// What a group came to.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Reproduced {
    /// The group of claims.
    pub group: Group,
    /// Its claims, in their order.
    pub rows: Vec<Row>,
    /// The document's pictures, drawn again.
    pub plots: Vec<Plot>,
    /// The parameters of the simulated drives that its figures rest on.
    pub parameters: Vec<UsedParameter>,
    /// How the drives were fitted to some of the figures to predict the others; None of the library's drives as they are.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub held_out: Option<HeldOut>,
}

/// How drives were set up to predict the figures that were held out.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct HeldOut {
    /// Parameters that were fitted, each to one figure.
    pub fits: Vec<FigureFit>,
    /// Parameters that the library's drives have fitted, set here without a figure in view.
    pub starts: Vec<SetParameter>,
}

/// A parameter that was fitted to one figure.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct FigureFit {
    /// The drives' names.
    pub of: Vec<String>,
    /// The parameter's name with its section.
    pub name: String,
    /// The value that was found, in five digits.
    pub value: String,
    /// The figure, `LNK-4, depth 16`, and others that say the same again.
    pub figures: Vec<String>,
    /// Whether some value gives the published figure; if not, this is the nearest that was found.
    pub met: bool,
}

/// A parameter that was set from another source than the document's figures.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct SetParameter {
    /// The drives' names.
    pub of: Vec<String>,
    /// The parameter's name with its section.
    pub name: String,
    /// Its value; None if it was left out.
    pub value: Option<String>,
    /// Where the value comes from.
    pub source: String,
}

impl Group {
    /// All of them.
    pub const ALL: [Self; 5] = [Self::Rec, Self::Qos, Self::Str, Self::Lnk, Self::Mix];

    /// The document.
    pub const fn document(self) -> &'static str {
        match self {
            Self::Rec => {
                "A data recorder on NVMe drives (white paper \"NVMe SSD write performance\", BittWare)"
            }
            Self::Qos => "NVM Sets and I/O determinism (conference talk, Memblaze)",
            Self::Str => "Streaming applications (article \"NVMe SSD and streaming applications\")",
            Self::Lnk => {
                "PCIe generations and lanes (article \"NVMe drives in different PCI Express modes\")"
            }
            Self::Mix => {
                "Block sizes and mixes on RAID 0 (article \"Different block sizes and read/write ratios\")"
            }
        }
    }

    /// What it claims.
    pub const fn claims(self) -> &'static [Claim] {
        match self {
            Self::Rec => rec::CLAIMS,
            Self::Qos => qos::CLAIMS,
            Self::Str => streaming::CLAIMS,
            Self::Lnk => lnk::CLAIMS,
            Self::Mix => mix::CLAIMS,
        }
    }

    /// The groups of these names (none: all) that have one of these claims (none: any).
    ///
    /// # Errors
    /// If there is no such claim, or none of the claims is in the groups.
    pub fn chosen(groups: &[Self], claims: &[String]) -> Result<Vec<Self>, ChoiceError> {
        let has = |group: &Self, id: &str| {
            group.claims().iter().any(|claim| claim.id.eq_ignore_ascii_case(id))
        };
        let known = |id: &String| Self::ALL.iter().any(|group| has(group, id));
        if let Some(id) = claims.iter().find(|id| !known(id)) {
            return Err(ChoiceError::NoClaim(id.clone()));
        }
        let wanted = |group: &Self| {
            (groups.is_empty() || groups.contains(group))
                && (claims.is_empty() || claims.iter().any(|id| has(group, id)))
        };
        let chosen: Vec<Self> = Self::ALL.into_iter().filter(wanted).collect();
        if chosen.is_empty() { Err(ChoiceError::NoneLeft) } else { Ok(chosen) }
    }

    /// Does its experiments.
    ///
    /// # Errors
    /// [`LabError`].
    pub fn reproduce(self, stage: &mut Stage<'_>) -> Result<Reproduced, LabError> {
        let (rows, plots) = match self {
            Self::Rec => rec::reproduce(stage)?,
            Self::Qos => qos::reproduce(stage)?,
            Self::Str => streaming::reproduce(stage)?,
            Self::Lnk => lnk::reproduce(stage)?,
            Self::Mix => mix::reproduce(stage)?,
        };
        Ok(Reproduced { group: self, rows, plots, parameters: stage.take_used(), held_out: None })
    }
}

/// Why groups can't be chosen.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ChoiceError {
    /// There is no claim of this name.
    NoClaim(String),
    /// The groups have none of the claims.
    NoneLeft,
}

impl fmt::Display for ChoiceError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NoClaim(id) => {
                let all = Group::ALL
                    .map(|group| format!("{group}-1 to {group}-{}", group.claims().len()));
                write!(f, "there is no claim '{id}': {}", all.join(", "))
            }
            Self::NoneLeft => f.write_str(
                "the groups that are named have none of the claims: leave the groups out",
            ),
        }
    }
}

impl std::error::Error for ChoiceError {}

impl fmt::Display for Group {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            Self::Rec => "REC",
            Self::Qos => "QOS",
            Self::Str => "STR",
            Self::Lnk => "LNK",
            Self::Mix => "MIX",
        })
    }
}

impl FromStr for Group {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let named = |group: &Self| group.to_string().eq_ignore_ascii_case(text);
        Self::ALL.into_iter().find(named).ok_or_else(|| {
            let names: Vec<String> = Self::ALL.iter().map(Self::to_string).collect();
            format!("'{text}' is no group of published results: give {}", names.join(", "))
        })
    }
}

impl Reproduced {
    /// Whether whatever differs from what was published is explained.
    pub fn holds(&self) -> bool {
        !self.rows.iter().flat_map(|row| &row.comparisons).any(Comparison::is_unexplained)
    }
}

/// The row of a claim of a group.
pub(super) fn row(claims: &[Claim], id: &str, basis: &Basis) -> Row {
    let claim = claims.iter().find(|claim| claim.id == id);
    claim.unwrap_or_else(|| panic!("there is no claim {id} in its group")).row(basis.clone())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn claims_are_numbered_from_1_under_the_name_of_their_group_which_they_choose() {
        for group in Group::ALL {
            for (claim, number) in group.claims().iter().zip(1..) {
                assert_eq!(claim.id, format!("{group}-{number}"));
            }
            assert_eq!(group.to_string().to_lowercase().parse(), Ok(group));
        }
        let chosen = |groups: &[Group], claim: &str| Group::chosen(groups, &[claim.to_owned()]);
        assert_eq!(Group::chosen(&[], &[]), Ok(Group::ALL.to_vec()));
        assert_eq!(chosen(&[], "lnk-1"), Ok(vec![Group::Lnk]));
        assert_eq!(chosen(&[Group::Rec], "LNK-1"), Err(ChoiceError::NoneLeft));
        assert_eq!(chosen(&[], "REC-0"), Err(ChoiceError::NoClaim("REC-0".to_owned())));
        let error = "XYZ".parse::<Group>().unwrap_err();
        assert!(error.contains("give REC"), "{error}");
    }
}
