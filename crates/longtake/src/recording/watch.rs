//! Judges a recording under way by its counters and the time: says when loss, silence or a link's failure begins and ends, once for each episode.

use std::fmt;

use base::{Duration, Instant};
use device::shell::quoted;
use format::Stage;
use source::interface::LinkState;
use source::spec::SourceSpec;

use super::observer::Snapshot;

/// Without a packet for so long, a source counts as silent.
pub const SILENCE: Duration = Duration::from_secs(5);

/// Loss that pauses for less than this is one episode.
pub const LOSS_PAUSE: Duration = Duration::from_secs(10);

/// Something that the operator should know now.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Notice {
    /// No packet came for [`SILENCE`].
    Silent,
    /// Packets come again after so long.
    Resumed(Duration),
    /// Packets are lost at this stage, so many since the last look.
    Losing(Stage, u64),
    /// The link of this interface is not up.
    LinkDown(String, LinkState),
    /// The link is up again after so long.
    LinkUp(Duration),
}

impl Notice {
    /// As a key in JSON.
    pub const fn key(&self) -> &'static str {
        match self {
            Self::Silent => "silent",
            Self::Resumed(_) => "resumed",
            Self::Losing(..) => "losing",
            Self::LinkDown(..) => "link_down",
            Self::LinkUp(_) => "link_up",
        }
    }
}

impl fmt::Display for Notice {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Silent => write!(f, "no packet for {SILENCE}; the recording goes on"),
            Self::Resumed(after) => write!(f, "packets come again after {after}"),
            Self::LinkDown(name, LinkState::Down) => write!(
                f,
                "interface {name} is down; the recording goes on: `ip link set {} up` brings it up",
                quoted(name)
            ),
            Self::LinkDown(name, _) => write!(
                f,
                "the link of {name} is down (no carrier); the recording goes on: check the cable and the other end"
            ),
            Self::LinkUp(after) => write!(f, "the link is up again after {after}"),
            Self::Losing(stage, packets) => {
                let remedy = match stage {
                    Stage::Interface => {
                        "the network adapter drops: larger receive rings (ethtool -G), or more queues"
                    }
                    Stage::KernelRing => "raise --kernel-buffer, or use queues=4",
                    Stage::NoBuffer => {
                        "the drives are too slow for this rate: more members, or more --memory"
                    }
                    Stage::ArrayFull => "the array is full; --when-full wrap makes it a ring",
                    Stage::DeviceError => "a member failed; see the messages above",
                    Stage::Filtered | Stage::Cut => "",
                };
                write!(f, "losing packets ({stage}, {packets} so far): {remedy}")
            }
        }
    }
}

/// The judge: looks at counters, knows no clock.
#[derive(Clone, Debug)]
pub struct Watch {
    /// Name of the interface that is recorded; empty for other sources, which have no link.
    interface: String,
    /// Chunk buffers of the recording. While all are held, a source that waits delivers nothing.
    buffers: u32,
    offered: u64,
    /// When the counter of offered packets was last seen to grow; the start until then.
    heard: Instant,
    silent: bool,
    lost: [u64; Stage::ALL.len()],
    /// When a stage last lost something.
    losing: [Option<Instant>; Stage::ALL.len()],
    /// The link's last known state.
    link: LinkState,
    /// Since when the link is not up.
    link_down: Option<Instant>,
}

impl Watch {
    /// For a recording of this source, with so many chunk buffers, that starts now.
    pub fn new(now: Instant, source: &str, buffers: u32) -> Self {
        let interface = match source.parse() {
            Ok(SourceSpec::Interface(spec)) => spec.name,
            _ => String::new(),
        };
        Self {
            interface,
            buffers,
            offered: 0,
            heard: now,
            silent: false,
            lost: [0; Stage::ALL.len()],
            losing: [None; Stage::ALL.len()],
            link: LinkState::Up,
            link_down: None,
        }
    }

    /// Looks at the counters as they are now.
    pub fn look(&mut self, now: Instant, snapshot: &Snapshot) -> Vec<Notice> {
        let mut notices: Vec<Notice> = self.look_at_link(now, snapshot).into_iter().collect();
        if snapshot.offered_packets > self.offered {
            if self.silent {
                notices.push(Notice::Resumed(now.since(self.heard)));
            }
            (self.offered, self.heard, self.silent) = (snapshot.offered_packets, now, false);
        } else if snapshot.buffers_held >= self.buffers {
            self.heard = now;
        } else if !self.silent && now.since(self.heard) >= SILENCE {
            self.silent = true;
            notices.push(Notice::Silent);
        }
        for stage in Stage::unwanted() {
            let at = stage.index();
            let lost = snapshot.lost_by_stage[at];
            if lost > self.lost[at] {
                if self.losing[at].is_none_or(|last| now.since(last) >= LOSS_PAUSE) {
                    notices.push(Notice::Losing(stage, lost));
                }
                (self.lost[at], self.losing[at]) = (lost, Some(now));
            }
        }
        notices
    }

    /// Reports a link whose state has changed. One that is gone with its interface ends the source, which says so itself.
    fn look_at_link(&mut self, now: Instant, snapshot: &Snapshot) -> Option<Notice> {
        let state = snapshot.link.filter(|&state| state != self.link)?;
        self.link = state;
        if state == LinkState::Up {
            return self.link_down.take().map(|since| Notice::LinkUp(now.since(since)));
        }
        self.link_down.get_or_insert(now);
        Some(Notice::LinkDown(self.interface.clone(), state))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(seconds: u64) -> Instant {
        Instant::START + Duration::from_secs(seconds)
    }

    fn offered(packets: u64) -> Snapshot {
        Snapshot { offered_packets: packets, ..Snapshot::default() }
    }

    fn lost(stage: Stage, packets: u64, offered: u64) -> Snapshot {
        let mut snapshot = Snapshot { offered_packets: offered, ..Snapshot::default() };
        snapshot.lost_by_stage[stage.index()] = packets;
        snapshot
    }

    #[test]
    fn silence_is_noticed_once_after_five_seconds_and_its_end_with_its_length() {
        let mut watch = Watch::new(at(0), "eth7", 8);
        assert_eq!(watch.look(at(1), &offered(10)), []);
        assert_eq!(watch.look(at(5), &offered(10)), []);
        assert_eq!(watch.look(at(6), &offered(10)), [Notice::Silent]);
        assert_eq!(watch.look(at(60), &offered(10)), []);
        assert_eq!(watch.look(at(61), &offered(11)), [Notice::Resumed(Duration::from_secs(60))]);
        assert_eq!(watch.look(at(65), &offered(11)), []);
        assert_eq!(watch.look(at(66), &offered(11)), [Notice::Silent]);
    }

    #[test]
    fn loss_is_noticed_once_an_episode_for_each_stage() {
        let mut watch = Watch::new(at(0), "eth7", 8);
        let ring = |packets, offered| lost(Stage::KernelRing, packets, offered);
        assert_eq!(watch.look(at(1), &ring(3, 10)), [Notice::Losing(Stage::KernelRing, 3)]);
        assert_eq!(watch.look(at(2), &ring(9, 20)), []);
        assert_eq!(watch.look(at(11), &ring(12, 30)), []);
        assert_eq!(watch.look(at(15), &ring(12, 40)), []);
        assert_eq!(watch.look(at(21), &ring(14, 50)), [Notice::Losing(Stage::KernelRing, 14)]);
        let both = lost(Stage::NoBuffer, 1, 60);
        assert_eq!(watch.look(at(22), &both), [Notice::Losing(Stage::NoBuffer, 1)]);
    }

    #[test]
    fn a_source_that_is_held_back_by_full_buffers_is_not_silent() {
        let mut watch = Watch::new(at(0), "eth7", 8);
        let full = Snapshot { buffers_held: 8, ..offered(10) };
        assert_eq!(watch.look(at(1), &full), []);
        assert_eq!(watch.look(at(9), &full), []);
        assert_eq!(watch.look(at(13), &offered(10)), []);
        assert_eq!(watch.look(at(14), &offered(10)), [Notice::Silent]);
    }

    #[test]
    fn what_a_filter_rejects_or_a_cut_leaves_out_is_no_loss() {
        let mut watch = Watch::new(at(0), "eth7", 8);
        assert_eq!(watch.look(at(1), &lost(Stage::Filtered, 1000, 1000)), []);
        assert_eq!(watch.look(at(2), &lost(Stage::Cut, 2000, 2000)), []);
    }

    #[test]
    fn a_link_that_goes_down_or_loses_its_carrier_is_noticed_at_once_and_comes_back_with_a_length()
    {
        let mut watch = Watch::new(at(0), "eth7", 8);
        let link = |link, offered_packets| Snapshot { link, ..offered(offered_packets) };
        let down_notice = |state| Notice::LinkDown("eth7".to_owned(), state);
        let (up, none, down) = (LinkState::Up, LinkState::NoCarrier, LinkState::Down);
        assert_eq!(watch.look(at(1), &link(Some(up), 1)), []);
        assert_eq!(watch.look(at(2), &link(Some(none), 1)), [down_notice(none)]);
        assert_eq!(watch.look(at(3), &link(Some(none), 1)), []);
        assert_eq!(watch.look(at(4), &link(Some(down), 1)), [down_notice(down)]);
        assert_eq!(watch.look(at(5), &link(None, 1)), []);
        let back = Notice::LinkUp(Duration::from_secs(10));
        assert_eq!(watch.look(at(12), &link(Some(up), 2)), [back]);
        assert_eq!(watch.look(at(13), &link(Some(up), 3)), []);
        // It may be down from the start.
        let mut watch = Watch::new(at(0), "eth7", 8);
        assert_eq!(watch.look(at(0), &link(Some(none), 0)), [down_notice(none)]);
    }

    #[test]
    fn a_notice_of_a_link_names_the_interface_and_a_command_that_can_be_typed() {
        let said = |state| Notice::LinkDown("eth7".to_owned(), state).to_string();
        assert!(said(LinkState::Down).contains("interface eth7 is down"));
        assert!(said(LinkState::Down).contains("`ip link set eth7 up`"));
        assert!(said(LinkState::NoCarrier).starts_with("the link of eth7 is down (no carrier)"));
    }
}
