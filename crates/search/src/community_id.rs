//! Community ID, version 1 (<https://github.com/corelight/community-id-spec>): one name for a flow in all programs that know it,
//! such as Zeek, Suricata, Wireshark and Arkime.

use std::fmt;
use std::net::IpAddr;
use std::str::FromStr;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use serde::{Deserialize, Serialize};
use sha1::{Digest, Sha1};

use crate::flow::Flow;
use crate::protocol;

/// What an id of version 1 begins with.
const PREFIX: &str = "1:";

/// The name of a flow: the SHA-1 digest of what tells it from others.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct CommunityId([u8; 20]);

/// The Community ID of a flow. The seed tells domains apart; everybody uses 0 who has no reason not to.
///
/// None for a flow of a protocol that has ports, if they are not known: its packets are later fragments or were truncated.
pub fn community_id(flow: &Flow, seed: u16) -> Option<CommunityId> {
    let has_ports = matches!(
        flow.protocol,
        protocol::ICMP | protocol::TCP | protocol::UDP | protocol::ICMPV6 | protocol::SCTP
    );
    if has_ports && flow.ports.is_none() {
        return None;
    }
    let mut hash = Sha1::new();
    hash.update(seed.to_be_bytes());
    for address in [flow.first, flow.second] {
        match address {
            IpAddr::V4(address) => hash.update(address.octets()),
            IpAddr::V6(address) => hash.update(address.octets()),
        }
    }
    hash.update([flow.protocol, 0]);
    if has_ports && let Some((first, second)) = flow.ports {
        hash.update(first.to_be_bytes());
        hash.update(second.to_be_bytes());
    }
    Some(CommunityId(hash.finalize().into()))
}

impl CommunityId {
    /// The digest.
    pub(crate) const fn digest(&self) -> &[u8; 20] {
        &self.0
    }
}

impl fmt::Display for CommunityId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{PREFIX}{}", STANDARD.encode(self.0))
    }
}

/// A text is no Community ID.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CommunityIdError;

impl fmt::Display for CommunityIdError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(
            "not a Community ID of version 1, such as 1:LQU9qZlK+B5F3KDmev6m5PMibrg=: \
             `longtake flows --community-id` lists them",
        )
    }
}

impl std::error::Error for CommunityIdError {}

impl FromStr for CommunityId {
    type Err = CommunityIdError;

    fn from_str(text: &str) -> Result<Self, CommunityIdError> {
        let encoded = text.strip_prefix(PREFIX).ok_or(CommunityIdError)?;
        let digest = STANDARD.decode(encoded).map_err(|_| CommunityIdError)?;
        digest.try_into().map(Self).map_err(|_| CommunityIdError)
    }
}
