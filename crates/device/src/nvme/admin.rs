//! Admin commands to a controller: Identify, Get Log Page, Get Features, by ioctl on its character device
//! or to whatever else [`Answers`] like a controller.
//!
//! The kernel checks CAP_SYS_ADMIN at every command, not at opening: a process that has given up root
//! can't ask any more, even through a descriptor that it still holds.

use std::fmt;
use std::fs::{File, OpenOptions};
use std::io;
use std::os::unix::fs::{FileTypeExt, MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

use super::command::{CommandError, IDENTIFY, NvmeCommand};
use super::identify::{ControllerIdentity, NamespaceIdentity};
use crate::sysfs::DeviceNumber;

/// A controller, open for questions.
#[derive(Debug)]
pub struct Controller {
    node: PathBuf,
    way: Box<dyn Answers>,
}

/// What answers as an NVMe controller does: a device, or a model of one.
pub trait Answers: fmt::Debug + Send {
    /// Fills `answer`, which is zeros before and all that is asked for: the first bytes where there are
    /// more. Gives the completion's first dword.
    ///
    /// # Errors
    /// The drive's status, or the reason why it can't be asked.
    fn ask(&self, question: Question, answer: &mut [u8]) -> Result<u32, CommandError>;
}

/// A command that only asks, in the specification's numbers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Question {
    /// Identify.
    Identify {
        /// Which data structure (CNS).
        cns: u8,
        /// Of which namespace, or above which one a list begins; 0 where it is of none.
        nsid: u32,
        /// The identifier of an NVM Set or endurance group from which a list begins, else 0.
        specific: u16,
    },
    /// Get Log Page: its first bytes.
    Log {
        /// Log page identifier.
        page: u8,
        /// The endurance group or NVM Set that the page is of, else 0.
        specific: u16,
    },
    /// Get Features: the current value, which is the completion's first dword.
    Feature {
        /// Feature identifier.
        id: u8,
        /// Command dword 11.
        cdw11: u32,
    },
}

/// Why a controller didn't answer.
#[derive(Debug)]
pub enum AdminError {
    /// The user may not ask.
    NotPermitted {
        /// The controller's node.
        node: PathBuf,
    },
    /// The node is not the controller that sysfs names, so it is left alone.
    NotTheController {
        /// The node.
        node: PathBuf,
    },
    /// The namespace is none of the active ones, for which Identify Namespace is zeros.
    Inactive {
        /// The controller's node.
        node: PathBuf,
        /// The namespace's identifier.
        nsid: u32,
    },
    /// The drive says that it doesn't know this question.
    NotSupported {
        /// The controller's node.
        node: PathBuf,
        /// What was asked.
        asked: &'static str,
    },
    /// The drive refused.
    Refused {
        /// The controller's node.
        node: PathBuf,
        /// What was asked.
        asked: &'static str,
        /// Status code type and status code, as the specification numbers them: `0x202` is code
        /// 02h of type 2h.
        status: u16,
    },
    /// The kernel could not ask.
    Io {
        /// The controller's node.
        node: PathBuf,
        /// What was asked.
        asked: &'static str,
        /// The kernel's reason.
        error: io::Error,
    },
}

impl fmt::Display for AdminError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NotPermitted { node } => write!(f, "asking {} needs root", node.display()),
            Self::NotTheController { node } => write!(
                f,
                "{} was not asked: it is not the controller that sysfs names; the node is stale",
                node.display()
            ),
            Self::Inactive { node, nsid } => write!(
                f,
                "{} has no active namespace {nsid}: its active ones are listed by `longtake drives`",
                node.display()
            ),
            Self::NotSupported { node, asked } => {
                write!(f, "{} does not support {asked}", node.display())
            }
            Self::Refused { node, asked, status } => {
                write!(f, "{} refused {asked} with NVMe status {status:#05x}", node.display())
            }
            Self::Io { node, asked, error } => {
                write!(f, "asking {} for {asked} failed: {error}", node.display())
            }
        }
    }
}

impl std::error::Error for AdminError {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match self {
            Self::Io { error, .. } => Some(error),
            _ => None,
        }
    }
}

/// Which Identify data structure: Base Specification 2.0, figure 273 (CNS values).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Identify {
    /// A namespace of the NVM command set (00h).
    Namespace(u32),
    /// The controller (01h).
    Controller,
    /// Active namespaces with identifiers above this one (02h).
    ActiveNamespaces(u32),
    /// NVM Sets from this identifier on (04h).
    NvmSets(u16),
    /// Endurance groups from this identifier on (19h).
    EnduranceGroups(u16),
}

/// Every Identify data structure's length in bytes.
pub const IDENTIFY_BYTES: usize = 4096;

/// A log page: Base Specification 2.0, figure 202.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LogPage {
    /// Log page identifier.
    pub id: u8,
    /// Log specific identifier: an endurance group or NVM Set where the page is of one, else 0.
    pub specific: u16,
    /// What it is called in messages.
    pub name: &'static str,
}

const GET_LOG_PAGE: u8 = 0x02;
const GET_FEATURES: u8 = 0x0A;
/// The log of the controller as a whole, not of one namespace.
const NAMESPACE_ALL: u32 = u32::MAX;
/// A drive that takes longer than this to answer is reported as not answering.
const TIMEOUT_MS: u32 = 2_000;

/// Statuses (type and code) of a question that the drive doesn't know: Invalid Command Opcode, Invalid
/// Field in Command, Invalid Log Page. Base Specification 2.0, section 3.3.3.2.1 (Status Code).
const UNKNOWN_QUESTION: [u16; 3] = [0x001, 0x002, 0x109];
/// Status code and its type, without More, Do Not Retry and retry delay: Base Specification 2.0, 3.3.3.2.
const STATUS_MASK: u16 = 0x7FF;

impl Controller {
    /// Opens the character device `node`, whose number sysfs gives as `expected`.
    ///
    /// # Errors
    /// If it can't be opened, or is another device.
    pub fn open(node: &Path, expected: Option<DeviceNumber>) -> Result<Self, AdminError> {
        let failed = |error: io::Error| match error.kind() {
            io::ErrorKind::PermissionDenied => AdminError::NotPermitted { node: node.to_owned() },
            _ => AdminError::Io { node: node.to_owned(), asked: "an opening", error },
        };
        // Reading is enough: what may be sent is decided by capability.
        let flags = libc::O_CLOEXEC | libc::O_NONBLOCK;
        let file = OpenOptions::new().read(true).custom_flags(flags).open(node).map_err(failed)?;
        let metadata = file.metadata().map_err(failed)?;
        let number = DeviceNumber::from_raw(metadata.rdev());
        if !metadata.file_type().is_char_device() || expected.is_some_and(|e| e != number) {
            return Err(AdminError::NotTheController { node: node.to_owned() });
        }
        Ok(Self::answered_by(node, Box::new(Device(file))))
    }

    /// A controller that has no character device; messages name it as `node`.
    pub fn answered_by(node: &Path, way: Box<dyn Answers>) -> Self {
        Self { node: node.to_owned(), way }
    }

    /// Its node, `/dev/nvme0`.
    pub fn node(&self) -> &Path {
        &self.node
    }

    /// Sends Identify.
    ///
    /// # Errors
    /// If the drive or the kernel refuses.
    pub fn identify(&self, what: Identify) -> Result<Box<[u8; IDENTIFY_BYTES]>, AdminError> {
        let (cns, nsid, specific, asked) = match what {
            Identify::Namespace(nsid) => (0x00, nsid, 0, "Identify Namespace"),
            Identify::Controller => (0x01, 0, 0, "Identify Controller"),
            Identify::ActiveNamespaces(above) => (0x02, above, 0, "its active namespaces"),
            Identify::NvmSets(from) => (0x04, 0, from, "its NVM Sets"),
            Identify::EnduranceGroups(from) => (0x19, 0, from, "its endurance groups"),
        };
        let mut answer = Box::new([0u8; IDENTIFY_BYTES]);
        self.send(Question::Identify { cns, nsid, specific }, &mut answer[..], asked)?;
        Ok(answer)
    }

    /// Identify Controller, read.
    ///
    /// # Errors
    /// If the drive or the kernel refuses.
    pub fn identity(&self) -> Result<ControllerIdentity, AdminError> {
        self.identify(Identify::Controller).map(|data| ControllerIdentity::parse(&data))
    }

    /// Identify Namespace, read.
    ///
    /// # Errors
    /// If the drive or the kernel refuses, or the namespace is not active.
    pub fn namespace(&self, nsid: u32) -> Result<NamespaceIdentity, AdminError> {
        let data = self.identify(Identify::Namespace(nsid))?;
        NamespaceIdentity::parse(&data)
            .ok_or_else(|| AdminError::Inactive { node: self.node.clone(), nsid })
    }

    /// Reads the first bytes of a log page.
    ///
    /// # Errors
    /// If the drive or the kernel refuses.
    ///
    /// # Panics
    /// If the length of `answer` is not a multiple of 4.
    pub fn log(&self, page: LogPage, answer: &mut [u8]) -> Result<(), AdminError> {
        assert!(answer.len() >= 4 && answer.len().is_multiple_of(4), "logs come in dwords");
        let question = Question::Log { page: page.id, specific: page.specific };
        self.send(question, answer, page.name).map(drop)
    }

    /// Asks for a feature's current value that fits in the completion.
    ///
    /// # Errors
    /// If the drive or the kernel refuses.
    pub fn feature(&self, id: u8, cdw11: u32, asked: &'static str) -> Result<u32, AdminError> {
        self.send(Question::Feature { id, cdw11 }, &mut [], asked)
    }

    fn send(
        &self,
        question: Question,
        answer: &mut [u8],
        asked: &'static str,
    ) -> Result<u32, AdminError> {
        let node = || self.node.clone();
        self.way.ask(question, answer).map_err(|error| match error {
            CommandError::Os(error) if error.kind() == io::ErrorKind::PermissionDenied => {
                AdminError::NotPermitted { node: node() }
            }
            CommandError::Os(error) => AdminError::Io { node: node(), asked, error },
            CommandError::Status(status) => match status & STATUS_MASK {
                code if UNKNOWN_QUESTION.contains(&code) => {
                    AdminError::NotSupported { node: node(), asked }
                }
                status => AdminError::Refused { node: node(), asked, status },
            },
        })
    }
}

/// A controller's character device.
#[derive(Debug)]
struct Device(File);

impl Answers for Device {
    fn ask(&self, question: Question, answer: &mut [u8]) -> Result<u32, CommandError> {
        question.command(answer.len()).ask(&self.0, answer)
    }
}

impl Question {
    /// As it goes to the drive, for an answer of so many bytes. The events of a log, if it has any, are
    /// left standing.
    fn command(self, bytes: usize) -> NvmeCommand {
        const RETAIN_ASYNCHRONOUS_EVENT: u32 = 1 << 15;
        let command = NvmeCommand { timeout_ms: TIMEOUT_MS, ..NvmeCommand::default() };
        match self {
            Self::Identify { cns, nsid, specific } => NvmeCommand {
                opcode: IDENTIFY,
                nsid,
                cdw10: u32::from(cns),
                cdw11: u32::from(specific),
                ..command
            },
            Self::Log { page, specific } => {
                // Dwords, less one.
                let dwords = (bytes / 4).saturating_sub(1) as u32;
                NvmeCommand {
                    opcode: GET_LOG_PAGE,
                    nsid: NAMESPACE_ALL,
                    cdw10: (dwords & 0xFFFF) << 16 | RETAIN_ASYNCHRONOUS_EVENT | u32::from(page),
                    cdw11: u32::from(specific) << 16 | dwords >> 16,
                    ..command
                }
            }
            Self::Feature { id, cdw11 } => {
                NvmeCommand { opcode: GET_FEATURES, cdw10: u32::from(id), cdw11, ..command }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn questions_go_to_the_drive_in_the_dwords_that_the_specification_names() {
        let list = Question::Identify { cns: 0x04, nsid: 0, specific: 3 }.command(4096);
        assert_eq!((list.opcode, list.nsid, list.cdw10, list.cdw11), (0x06, 0, 4, 3));
        let log = Question::Log { page: 0x09, specific: 2 }.command(512);
        assert_eq!((log.opcode, log.nsid), (0x02, u32::MAX));
        assert_eq!((log.cdw10, log.cdw11), (127 << 16 | 1 << 15 | 0x09, 2 << 16));
        let long = Question::Log { page: 0x20, specific: 0 }.command(4 << 20);
        assert_eq!((long.cdw10 >> 16, long.cdw11), (0xFFFF, 0xF));
        let feature = Question::Feature { id: 0x1D, cdw11: 1 }.command(0);
        assert_eq!((feature.opcode, feature.cdw10, feature.cdw11), (0x0A, 0x1D, 1));
    }

    #[test]
    fn a_node_that_is_no_controller_is_never_asked() {
        let elsewhere = Some(DeviceNumber { major: 240, minor: 0 });
        let error = Controller::open(Path::new("/dev/null"), elsewhere).unwrap_err();
        assert!(matches!(error, AdminError::NotTheController { .. }), "{error}");
        let file = tempfile::NamedTempFile::new().unwrap();
        let error = Controller::open(file.path(), None).unwrap_err();
        assert!(error.to_string().contains("was not asked"), "{error}");
    }

    #[test]
    fn a_device_that_is_no_nvme_drive_answers_with_an_error_that_says_what_was_asked() {
        let null = Controller::open(Path::new("/dev/null"), None).unwrap();
        let error = null.identify(Identify::Controller).unwrap_err().to_string();
        assert!(error.contains("/dev/null") && error.contains("Identify Controller"), "{error}");
    }
}
