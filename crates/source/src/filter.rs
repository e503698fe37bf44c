//! Capture filters in tcpdump's language: libpcap compiles the expression to a program of classic BPF,
//! which runs in the kernel for a capture and in this crate's own interpreter everywhere else.

mod compile;
mod interpret;

use std::fmt;

use format::LinkType;

pub use interpret::{INSTRUCTIONS_MAX, Instruction, VerifyError};

use interpret::Verified;

/// A compiled filter, verified so that running it can't fail.
#[derive(Clone, Debug)]
pub struct Program {
    instructions: Vec<Instruction>,
    verified: Verified,
}

impl Program {
    /// Compiles `expression` (`man pcap-filter`) for packets that begin with `link_type`'s header.
    /// An accepted packet is to be cut to `snap_length` bytes; 0 means that it is kept whole. An
    /// empty expression accepts everything. Host names in it are looked up, which may take a while.
    ///
    /// # Errors
    /// [`FilterError`] if libpcap isn't there, or does not accept the expression for this link type.
    pub fn compile(
        expression: &str,
        link_type: LinkType,
        snap_length: u32,
    ) -> Result<Self, FilterError> {
        let instructions = compile::compile(expression, link_type, snap_length)?;
        Self::from_instructions(instructions)
            .map_err(|reason| FilterError::Unverified { expression: expression.to_owned(), reason })
    }

    /// Takes a program that was compiled elsewhere.
    ///
    /// # Errors
    /// [`VerifyError`] if it could jump out of itself, end without an answer, divide by a constant
    /// zero, use memory that isn't there, or contains an instruction that classic BPF doesn't have.
    pub fn from_instructions(instructions: Vec<Instruction>) -> Result<Self, VerifyError> {
        let verified = Verified::new(&instructions)?;
        Ok(Self { instructions, verified })
    }

    /// The instructions, in the layout that the kernel takes (`struct sock_filter`).
    pub fn instructions(&self) -> &[Instruction] {
        &self.instructions
    }

    /// How many bytes of the packet to keep; 0 refuses it. The answer may exceed its length.
    /// `original_length` is the packet's length on the wire, which `len` in an expression means.
    pub fn accept_length(&self, packet: &[u8], original_length: u32) -> u32 {
        self.verified.run(packet, original_length)
    }

    /// Whether the packet is accepted.
    pub fn matches(&self, packet: &[u8], original_length: u32) -> bool {
        self.accept_length(packet, original_length) != 0
    }
}

/// Why there is no filter program.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum FilterError {
    /// libpcap could not be loaded.
    LibraryMissing {
        /// What the dynamic linker said of the names that were tried.
        reason: String,
    },
    /// libpcap does not accept the expression.
    Expression {
        /// The expression.
        expression: String,
        /// For packets of this type.
        link_type: LinkType,
        /// In libpcap's words.
        message: String,
    },
    /// libpcap's program did not pass verification.
    Unverified {
        /// The expression.
        expression: String,
        /// What is wrong with the program.
        reason: VerifyError,
    },
}

impl fmt::Display for FilterError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::LibraryMissing { reason } => write!(
                f,
                "a filter needs libpcap to compile it, which can't be loaded ({reason}): install it \
                 (apt-get install libpcap0.8, or dnf install libpcap), or record without a filter"
            ),
            Self::Expression { expression, link_type, message } => write!(
                f,
                "the filter '{expression}' does not compile for link type {}: {message}; \
                 see man pcap-filter for the language",
                link_type.0
            ),
            Self::Unverified { expression, reason } => write!(
                f,
                "libpcap compiled the filter '{expression}' to a program that is not safe to run \
                 ({reason}): write it in another way, or update libpcap"
            ),
        }
    }
}

impl std::error::Error for FilterError {}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_wrong_expression_is_named_with_libpcaps_reason_and_where_to_read() {
        let error = Program::compile("tcp prot 80", LinkType::ETHERNET, 0).unwrap_err();
        let text = error.to_string();
        for part in ["'tcp prot 80'", "syntax error", "man pcap-filter"] {
            assert!(text.contains(part), "{text}");
        }
        let error = Program::compile("tcp\0", LinkType::ETHERNET, 0).unwrap_err();
        assert!(matches!(error, FilterError::Expression { .. }), "{error}");
    }

    #[test]
    fn an_expression_that_the_link_type_cannot_express_is_refused() {
        assert!(Program::compile("vlan 3", LinkType::RAW_IP, 0).is_err());
        assert!(Program::compile("tcp", LinkType::RAW_IP, 0).is_ok());
        assert!(Program::compile("len > 10", LinkType::USER0, 0).is_ok());
    }

    #[test]
    fn an_accepted_packet_is_kept_up_to_the_snap_length() {
        let cut = Program::compile("", LinkType::ETHERNET, 96).unwrap();
        assert_eq!(cut.accept_length(&[0; 60], 60), 96);
        let whole = Program::compile("", LinkType::ETHERNET, 0).unwrap();
        assert!(whole.accept_length(&[0; 60], 60) >= 4 << 20);
    }

    #[test]
    fn threads_compile_at_the_same_time() {
        std::thread::scope(|scope| {
            for port in 0..8 {
                scope.spawn(move || {
                    for _ in 0..50 {
                        let expression = format!("udp port {}", 5000 + port);
                        let program = Program::compile(&expression, LinkType::ETHERNET, 0).unwrap();
                        assert!(program.instructions().iter().any(|i| i.k == 5000 + port));
                    }
                });
            }
        });
    }
}
