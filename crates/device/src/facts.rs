//! Everything that a drive tells about itself: identity, link, temperatures, and for NVMe what Identify and
//! the logs say.
//!
//! [`read`] asks once for all of it, [`of_controller`] does so where no device stands for the drive. What a drive doesn't have is [`Answer::NotSupported`], what it
//! could not be asked is [`Answer::NotTold`] with the reason; neither is ever shown as zero. For a few
//! figures once a second see [`crate::sampler`].

mod nodeless;

use std::fmt;
use std::path::{Path, PathBuf};

use serde::Serialize;

use crate::identity::{self, Drive, IdentityError, Namespace};
use crate::link;
use crate::nvme::Controller;
use crate::nvme::admin::{AdminError, Identify, LogPage};
use crate::nvme::identify::{
    self, Attribute, ControllerIdentity, LogAbility, NamespaceIdentity, NvmSet,
};
use crate::nvme::log::{self, EnduranceGroup, PredictableLatency, SmartLog, SupportedLog};
use crate::nvme::ocp::{self, ExtendedHealth, LatencyMonitor, OcpError, OcpPageError};
use crate::nvme::placement::{self, Placement};
use crate::sysfs::{BlockDevice, Node, System};
use crate::temperature::Sensor;
pub use crate::temperature::Temperature;
pub use nodeless::{SataDrive, of_controller, of_sata};

/// A drive, a partition or a file, and all that is known of it.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Facts {
    /// Which it is.
    pub drive: Drive,
    /// Whether its link is what it could be; None where it has no link that can be read.
    pub link_verdict: Option<link::LinkVerdict>,
    /// Its temperatures as the kernel shows them.
    pub temperatures: Vec<Temperature>,
    /// The kernel's I/O scheduler in front of it: `none`, `mq-deadline`; None where there is none to read.
    pub scheduler: Option<String>,
    /// What only an NVMe drive tells.
    pub nvme: Option<NvmeFacts>,
}

/// What an NVMe drive tells.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct NvmeFacts {
    /// The controller that was asked.
    pub controller_node: PathBuf,
    /// Identify Controller.
    pub controller: Answer<ControllerIdentity>,
    /// Identify Namespace.
    pub namespace: Answer<NamespaceIdentity>,
    /// The controller's active namespaces, by identifier.
    pub active_namespaces: Answer<Vec<u32>>,
    /// The SMART log.
    pub smart: Answer<SmartLog>,
    /// The NVM Sets.
    pub nvm_sets: Answer<Vec<NvmSet>>,
    /// The endurance groups' logs.
    pub endurance_groups: Answer<Vec<EnduranceGroup>>,
    /// Flexible data placement, by endurance group.
    pub placement: Answer<Vec<Placement>>,
    /// Predictable latency, by NVM Set.
    pub predictable_latency: Answer<Vec<PredictableLatency>>,
    /// Which log pages there are.
    pub supported_logs: Answer<Vec<SupportedLog>>,
    /// What the medium was written (OCP log page C0h).
    pub extended_health: Answer<ExtendedHealth>,
    /// How many commands were slow (OCP log page C3h).
    pub latency_monitor: Answer<LatencyMonitor>,
}

/// What came of a question.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Answer<T> {
    /// The drive's answer.
    Known(T),
    /// The drive doesn't have that.
    NotSupported,
    /// The drive could not be asked, or did not answer.
    NotTold {
        /// The reason.
        reason: String,
    },
}

impl<T> Answer<T> {
    /// The answer, if there is one.
    pub fn known(&self) -> Option<&T> {
        match self {
            Self::Known(answer) => Some(answer),
            Self::NotSupported | Self::NotTold { .. } => None,
        }
    }

    /// The same reason for not having another answer.
    fn instead<U>(&self) -> Answer<U> {
        match self {
            Self::Known(_) | Self::NotSupported => Answer::NotSupported,
            Self::NotTold { reason } => Answer::NotTold { reason: reason.clone() },
        }
    }
}

impl<T> From<Result<T, AdminError>> for Answer<T> {
    fn from(asked: Result<T, AdminError>) -> Self {
        match asked {
            Ok(answer) => Self::Known(answer),
            Err(AdminError::NotSupported { .. }) => Self::NotSupported,
            Err(error) => Self::NotTold { reason: error.to_string() },
        }
    }
}

impl<T> From<Result<T, OcpError>> for Answer<T> {
    fn from(asked: Result<T, OcpError>) -> Self {
        match asked {
            Ok(answer) => Self::Known(answer),
            Err(OcpError::Asking(error)) => Err(error).into(),
            Err(OcpError::Page(OcpPageError::Foreign { .. })) => Self::NotSupported,
            Err(error @ OcpError::Page(_)) => Self::NotTold { reason: error.to_string() },
        }
    }
}

impl<T> fmt::Display for Answer<T> {
    /// Why there is no answer; `known` if there is one.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Known(_) => f.write_str("known"),
            Self::NotSupported => f.write_str("not supported by this drive"),
            Self::NotTold { reason } => write!(f, "not reported: {reason}"),
        }
    }
}

/// All that is known of a target.
///
/// # Errors
/// If it isn't there, or is neither a drive nor a file. What it could not be asked is no error.
pub fn read(path: &Path) -> Result<Facts, IdentityError> {
    read_in(&System::default(), path)
}

/// [`read`] in another system. The path is taken as it is, not below the system's root.
///
/// # Errors
/// As [`read`].
pub fn read_in(system: &System, path: &Path) -> Result<Facts, IdentityError> {
    let drive = identity::describe_in(system, path)?;
    let temperatures = sensors(system, path, &drive).iter().filter_map(Sensor::read).collect();
    Ok(Facts {
        link_verdict: drive.link.as_ref().map(link::Link::verdict),
        temperatures,
        scheduler: disk(system, path)
            .and_then(|disk| scheduler(&disk.attribute("queue/scheduler")?)),
        nvme: drive.nvme.as_ref().and_then(|namespace| nvme(system, namespace)),
        drive,
    })
}

/// The scheduler that is in use among those that the kernel lists: `none [mq-deadline] kyber`.
fn scheduler(listed: &str) -> Option<String> {
    let mut names = listed.split_whitespace();
    let in_use = |name: &str| Some(name.strip_prefix('[')?.strip_suffix(']')?.to_owned());
    names.find_map(in_use).or_else(|| (listed == "none").then(|| listed.to_owned()))
}

/// The whole disk behind a path, if it is a block device.
pub(crate) fn disk(system: &System, path: &Path) -> Option<BlockDevice> {
    match system.resolve(path).ok()? {
        Node::Block(device) | Node::Generic(device) => Some(device.whole().unwrap_or(device)),
        _ => None,
    }
}

/// A drive's temperature sensors.
pub(crate) fn sensors(system: &System, path: &Path, drive: &Drive) -> Vec<Sensor> {
    let controller = drive.nvme.as_ref().and_then(|namespace| namespace.controllers.first());
    match controller {
        Some(controller) => Sensor::of(&system.sys.join("class/nvme").join(controller)),
        None => disk(system, path)
            .map_or_else(Vec::new, |disk| Sensor::of(&disk.directory.join("device"))),
    }
}

fn nvme(system: &System, namespace: &Namespace) -> Option<NvmeFacts> {
    let (node, number) = identity::controller_node(system, namespace.controllers.first()?);
    Some(match Controller::open(&node, number) {
        Ok(controller) => ask(&controller, namespace.id),
        Err(error) => {
            let reason = error.to_string();
            NvmeFacts {
                controller_node: node,
                controller: not_told(&reason),
                namespace: not_told(&reason),
                active_namespaces: not_told(&reason),
                smart: not_told(&reason),
                nvm_sets: not_told(&reason),
                endurance_groups: not_told(&reason),
                placement: not_told(&reason),
                predictable_latency: not_told(&reason),
                supported_logs: not_told(&reason),
                extended_health: not_told(&reason),
                latency_monitor: not_told(&reason),
            }
        }
    })
}

fn not_told<T>(reason: &str) -> Answer<T> {
    Answer::NotTold { reason: reason.to_owned() }
}

/// Asks everything. What the controller says that it doesn't have isn't asked for: some drives answer with
/// zeros, or enter an error in their log.
fn ask(controller: &Controller, nsid: Option<u32>) -> NvmeFacts {
    let identity = Answer::from(controller.identity());
    let namespace = namespace(controller, nsid);
    let has = |attribute| identity.known().is_some_and(|identity| identity.has(attribute));

    let nvm_sets = if has(Attribute::NvmSets) {
        let list = controller.identify(Identify::NvmSets(0));
        list.map(|data| identify::parse_nvm_sets(&data)).into()
    } else {
        identity.instead()
    };
    let groups = if has(Attribute::EnduranceGroups) {
        endurance_groups(controller, &namespace).into()
    } else {
        identity.instead()
    };
    let logs = match &groups {
        Answer::Known(ids) => each(ids, |id| endurance_group(controller, id)),
        none => none.instead(),
    };
    let placement = match (&groups, has(Attribute::FlexibleDataPlacement)) {
        (Answer::Known(ids), true) => each(ids, |id| placed(controller, id)),
        (none, true) => none.instead(),
        (_, false) => identity.instead(),
    };
    let predictable_latency = match (&nvm_sets, has(Attribute::PredictableLatencyMode)) {
        (Answer::Known(sets), true) => {
            let ids: Vec<_> = sets.iter().map(|set| set.id).collect();
            each(&ids, |id| predictable_latency(controller, id))
        }
        (none, true) => none.instead(),
        (_, false) => identity.instead(),
    };
    let lists_logs = identity
        .known()
        .is_some_and(|identity| identity.log_abilities.contains(&LogAbility::SupportedLogPages));
    let supported_logs =
        if lists_logs { supported_logs(controller).into() } else { identity.instead() };
    NvmeFacts {
        controller_node: controller.node().to_owned(),
        namespace,
        active_namespaces: active_namespaces(controller).into(),
        smart: smart(controller).into(),
        nvm_sets,
        endurance_groups: logs,
        placement,
        predictable_latency,
        extended_health: ocp(&supported_logs, ocp::EXTENDED_HEALTH, || {
            ExtendedHealth::ask(controller)
        }),
        latency_monitor: ocp(&supported_logs, ocp::LATENCY_MONITOR, || {
            LatencyMonitor::ask(controller)
        }),
        supported_logs,
        controller: identity,
    }
}

fn namespace(controller: &Controller, nsid: Option<u32>) -> Answer<NamespaceIdentity> {
    let Some(nsid) = nsid else { return not_told("sysfs doesn't tell the namespace's identifier") };
    controller.namespace(nsid).into()
}

/// Lists of 1,024 until one isn't full. Identifiers ascend, which ends it with any drive.
fn active_namespaces(controller: &Controller) -> Result<Vec<u32>, AdminError> {
    let mut found: Vec<u32> = Vec::new();
    loop {
        let above = found.last().copied().unwrap_or(0);
        let data = controller.identify(Identify::ActiveNamespaces(above))?;
        let list = identify::parse_namespaces(&data);
        let full = list.len() == identify::NAMESPACES_A_LIST;
        let ascends = list.first().is_none_or(|&first| first > above) && list.is_sorted();
        if ascends {
            found.extend(list);
        }
        if !(full && ascends) {
            return Ok(found);
        }
    }
}

pub(crate) fn smart(controller: &Controller) -> Result<SmartLog, AdminError> {
    let mut answer = [0; log::LOG_BYTES];
    controller.log(log::HEALTH, &mut answer)?;
    Ok(SmartLog::parse(&answer))
}

/// The list, or where a drive that complies with an older specification has none, the namespace's group.
fn endurance_groups(
    controller: &Controller,
    namespace: &Answer<NamespaceIdentity>,
) -> Result<Vec<u16>, AdminError> {
    let own = namespace.known().and_then(|namespace| namespace.endurance_group_id);
    match (controller.identify(Identify::EnduranceGroups(0)), own) {
        (Ok(data), _) => Ok(identify::parse_endurance_groups(&data)),
        (Err(AdminError::NotSupported { .. }), Some(own)) => Ok(vec![own]),
        (Err(error), _) => Err(error),
    }
}

pub(crate) fn endurance_group(
    controller: &Controller,
    id: u16,
) -> Result<EnduranceGroup, AdminError> {
    let mut answer = [0; log::LOG_BYTES];
    controller.log(log::endurance_group_page(id), &mut answer)?;
    Ok(EnduranceGroup::parse(id, &answer))
}

fn placed(controller: &Controller, group: u16) -> Result<Placement, AdminError> {
    let feature = controller.feature(placement::FEATURE, group.into(), "its FDP feature");
    let (enabled, configuration_in_use) = match feature {
        Ok(value) => {
            let (enabled, configuration) = placement::parse_feature(value);
            (Some(enabled), configuration)
        }
        Err(_) => (None, None),
    };
    let page = placement::configurations_page(group);
    let mut head = [0; placement::HEAD_BYTES];
    controller.log(page, &mut head)?;
    let mut answer = vec![0; placement::configurations_bytes(&head)];
    controller.log(page, &mut answer)?;
    let statistics = if enabled == Some(true) {
        let mut answer = [0; placement::STATISTICS_BYTES];
        controller.log(placement::statistics_page(group), &mut answer)?;
        Some(placement::Statistics::parse(&answer))
    } else {
        None
    };
    Ok(Placement {
        endurance_group_id: group,
        enabled,
        configuration_in_use,
        configurations: placement::parse_configurations(&answer),
        statistics,
    })
}

fn predictable_latency(
    controller: &Controller,
    set: u16,
) -> Result<PredictableLatency, AdminError> {
    let mut answer = [0; log::LOG_BYTES];
    controller.log(log::predictable_latency_page(set), &mut answer)?;
    Ok(PredictableLatency::parse(set, &answer))
}

fn supported_logs(controller: &Controller) -> Result<Vec<SupportedLog>, AdminError> {
    let mut answer = [0; log::SUPPORTED_BYTES];
    controller.log(log::SUPPORTED, &mut answer)?;
    Ok(log::parse_supported(&answer))
}

/// A page of OCP's. A drive that lists its log pages is asked only for what it lists; the others are
/// asked, because few drives that have these pages have the list.
fn ocp<T>(
    listed: &Answer<Vec<SupportedLog>>,
    page: LogPage,
    ask: impl FnOnce() -> Result<T, OcpError>,
) -> Answer<T> {
    match listed {
        Answer::Known(list) if list.iter().all(|log| log.id != page.id) => Answer::NotSupported,
        _ => ask().into(),
    }
}

/// One question for each identifier; the first that isn't answered stands for all.
fn each<T>(ids: &[u16], ask: impl Fn(u16) -> Result<T, AdminError>) -> Answer<Vec<T>> {
    ids.iter().map(|&id| ask(id)).collect::<Result<Vec<_>, _>>().into()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_answer_says_in_json_whether_it_is_known_absent_or_not_told() {
        let json = |answer: Answer<Vec<u32>>| serde_json::to_value(answer).unwrap();
        assert_eq!(json(Answer::Known(vec![1])), serde_json::json!({"known": [1]}));
        assert_eq!(json(Answer::NotSupported), "not_supported");
        let reason = "asking /dev/nvme0 needs root";
        let not_told = serde_json::json!({"not_told": {"reason": reason}});
        assert_eq!(json(super::not_told(reason)), not_told);
    }

    #[test]
    fn what_hangs_on_an_answer_that_was_not_told_is_not_told_either() {
        let nothing: Answer<u8> = not_told("it is gone");
        assert_eq!(nothing.instead::<u32>(), not_told("it is gone"));
        assert_eq!(Answer::Known(1).instead::<u32>(), Answer::NotSupported);
    }

    #[test]
    fn a_question_that_the_drive_does_not_know_is_not_supported_and_a_failure_is_told() {
        let node = PathBuf::from("/dev/nvme0");
        let unknown = AdminError::NotSupported { node: node.clone(), asked: "its SMART log" };
        assert_eq!(Answer::<u8>::from(Err(unknown)), Answer::NotSupported);
        let refused = AdminError::Refused { node, asked: "its SMART log", status: 0x106 };
        let answer = Answer::<u8>::from(Err(refused)).to_string();
        assert_eq!(answer, "not reported: /dev/nvme0 refused its SMART log with NVMe status 0x106");
    }

    #[test]
    fn a_file_has_an_identity_and_nothing_else() {
        let file = tempfile::NamedTempFile::new().unwrap();
        let facts = read(file.path()).unwrap();
        assert_eq!(facts.drive.path, file.path());
        assert_eq!((facts.link_verdict, facts.nvme), (None, None));
        assert!(facts.temperatures.is_empty());
    }
}
