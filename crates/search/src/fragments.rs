//! The ports of fragmented datagrams: only a datagram's first fragment has them, and they are remembered for the later ones.

use std::collections::{HashMap, VecDeque};
use std::net::IpAddr;

use crate::layers::{Fragment, IpLayer, Layer, Layers, Part};

/// A good number of datagrams to remember, in 16 MB at most: the fragments of one mostly come within a few packets of each other.
pub const FRAGMENTS_MAX: usize = 1 << 16;

/// What all fragments of a datagram have in common (RFC 791, RFC 8200).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
struct Datagram {
    source: IpAddr,
    destination: IpAddr,
    protocol: u8,
    id: u32,
}

/// The ports of datagrams whose first fragments were seen of late. What is beyond its capacity is forgotten, the oldest first.
#[derive(Debug)]
pub struct Fragments {
    /// The transport layer of each, and which entry it is.
    known: HashMap<Datagram, (Layer, u64)>,
    /// In the order in which they came. One that came again is in it more than once.
    order: VecDeque<(Datagram, u64)>,
    entered: u64,
    max: usize,
}

impl Fragments {
    /// Remembers at most so many datagrams, at least one.
    pub fn new(max: usize) -> Self {
        let max = max.max(1);
        Self { known: HashMap::new(), order: VecDeque::new(), entered: 0, max }
    }

    /// Datagrams that are remembered.
    pub fn len(&self) -> usize {
        self.known.len()
    }

    /// Whether none is remembered.
    pub fn is_empty(&self) -> bool {
        self.known.is_empty()
    }

    /// Remembers the ports of a packet that is a first fragment, and adds them to one that is a later fragment of a datagram that is
    /// remembered. Of nested fragments, the innermost counts.
    #[inline]
    pub fn resolve(&mut self, layers: &mut Layers) {
        let last = layers.all().iter().rposition(|layer| matches!(layer, Layer::Ip(_)));
        let Some(at) = last else { return };
        let Layer::Ip(IpLayer { source, destination, protocol, fragment }) = layers.all()[at]
        else {
            return;
        };
        let (Some(protocol), Some(Fragment { id, part })) = (protocol, fragment) else { return };
        let datagram = Datagram { source, destination, protocol, id };
        match (part, layers.all().get(at + 1)) {
            (Part::First, Some(&ports @ (Layer::Ports(..) | Layer::Icmp(..)))) => {
                self.enter(datagram, ports);
            }
            (Part::Later, None) => {
                if let Some(&(ports, _)) = self.known.get(&datagram) {
                    // Without room for it the packet stays without ports, and its end says that already.
                    layers.push(ports).ok();
                }
            }
            _ => {}
        }
    }

    fn enter(&mut self, datagram: Datagram, ports: Layer) {
        self.entered += 1;
        self.known.insert(datagram, (ports, self.entered));
        self.order.push_back((datagram, self.entered));
        if self.order.len() > self.max
            && let Some((oldest, entry)) = self.order.pop_front()
            && self.known.get(&oldest).is_some_and(|(_, newest)| *newest == entry)
        {
            self.known.remove(&oldest);
        }
    }
}
