//! The kernel's capture ring (TPACKET_V3): memory shared with the kernel, which fills it block by
//! block. A block belongs to one side at a time, as its status word says.
//!
//! Layouts: `linux/if_packet.h`; behaviour: `Documentation/networking/packet_mmap.rst`.

use std::io;
use std::marker::PhantomData;
use std::mem;
use std::ptr::NonNull;
use std::sync::atomic::{AtomicU32, Ordering};

use base::Timestamp;
use libc::{c_int, tpacket_block_desc, tpacket3_hdr};

use crate::socket::Socket;

/// A VLAN tag as it stands in a frame: EtherType and tag control information.
const VLAN_TAG: usize = 4;
/// A tag stands behind the two addresses.
const ADDRESSES: usize = 12;

const STATUS: usize = mem::offset_of!(tpacket_block_desc, hdr);

/// How much memory, and when blocks change hands.
#[derive(Clone, Copy, Debug)]
pub(super) struct Layout {
    /// Bytes in a block; a multiple of the page size. No frame is longer than a block less 100 bytes.
    pub block_bytes: u32,
    /// Blocks in the ring.
    pub blocks: u32,
    /// After how long a block goes to the reader although it is not full.
    pub retire_ms: u32,
}

/// The mapped ring, with the place of the next block to read.
#[derive(Debug)]
pub(super) struct Ring {
    memory: NonNull<u8>,
    block_bytes: usize,
    blocks: usize,
    next: usize,
}

// SAFETY: the memory is this value's alone on our side, and nothing about it belongs to a thread.
unsafe impl Send for Ring {}

impl Ring {
    /// Makes the kernel capture into a ring, and maps it. The socket must not be bound to a protocol
    /// yet. `ENOMEM` is the kernel having too little memory in one piece.
    pub(super) fn set_up(socket: &Socket, layout: Layout) -> io::Result<Self> {
        let set = |option, value: c_int| socket.set(libc::SOL_PACKET, option, &value);
        set(libc::PACKET_VERSION, libc::tpacket_versions::TPACKET_V3 as c_int)?;
        // Room in front of every frame to put a tag back that the kernel took out.
        set(libc::PACKET_RESERVE, VLAN_TAG as c_int)?;
        // TPACKET_V3 packs frames one behind the other; the kernel only checks this number.
        const FRAME: u32 = 2048;
        let request = libc::tpacket_req3 {
            tp_block_size: layout.block_bytes,
            tp_block_nr: layout.blocks,
            tp_frame_size: FRAME,
            tp_frame_nr: layout.block_bytes / FRAME * layout.blocks,
            tp_retire_blk_tov: layout.retire_ms,
            tp_sizeof_priv: 0,
            tp_feature_req_word: 0,
        };
        socket.set(libc::SOL_PACKET, libc::PACKET_RX_RING, &request)?;
        let (block_bytes, blocks) = (layout.block_bytes as usize, layout.blocks as usize);
        // SAFETY: a new mapping at an address of the kernel's choice.
        let memory = unsafe {
            libc::mmap(
                std::ptr::null_mut(),
                block_bytes * blocks,
                libc::PROT_READ | libc::PROT_WRITE,
                libc::MAP_SHARED | libc::MAP_POPULATE,
                socket.fd(),
                0,
            )
        };
        if memory == libc::MAP_FAILED {
            return Err(io::Error::last_os_error());
        }
        let memory = NonNull::new(memory.cast()).ok_or(io::ErrorKind::OutOfMemory)?;
        Ok(Self { memory, block_bytes, blocks, next: 0 })
    }

    /// The next block, if the kernel has handed it over. Dropping it hands it back.
    pub(super) fn ready(&mut self) -> Option<Block<'_>> {
        // SAFETY: `next` is below `blocks`, so this stays inside the mapping.
        let base = unsafe { self.memory.add(self.next * self.block_bytes) };
        // Acquire: what the kernel wrote before it set the status is seen after reading it.
        let status = status_of(base).load(Ordering::Acquire);
        if status & libc::TP_STATUS_USER == 0 {
            return None;
        }
        // SAFETY: the block is ours, begins with this description, and is aligned to a page.
        let header = unsafe { base.cast::<tpacket_block_desc>().as_ref().hdr.bh1 };
        self.next = (self.next + 1) % self.blocks;
        Some(Block {
            base,
            bytes: self.block_bytes,
            left: header.num_pkts,
            offset: header.offset_to_first_pkt as usize,
            losing: status & libc::TP_STATUS_LOSING != 0,
            _ring: PhantomData,
        })
    }
}

impl Drop for Ring {
    fn drop(&mut self) {
        // SAFETY: the mapping of `set_up`, whole; blocks borrow the ring, so none is left.
        unsafe { libc::munmap(self.memory.as_ptr().cast(), self.block_bytes * self.blocks) };
    }
}

fn status_of<'b>(block: NonNull<u8>) -> &'b AtomicU32 {
    // SAFETY: the block begins with a tpacket_block_desc, aligned to a page, whose status word both
    // sides access as a whole; callers hold the mapping.
    unsafe { AtomicU32::from_ptr(block.add(STATUS).cast().as_ptr()) }
}

/// A block that the kernel has handed over, read from front to back.
#[derive(Debug)]
pub(super) struct Block<'r> {
    base: NonNull<u8>,
    bytes: usize,
    left: u32,
    offset: usize,
    losing: bool,
    _ring: PhantomData<&'r mut Ring>,
}

/// One captured frame, in the ring's memory.
#[derive(Debug)]
pub(super) struct Frame<'b> {
    /// When it came by.
    pub timestamp: Timestamp,
    /// Its length on the wire, with the tag that the kernel took out.
    pub original_length: u32,
    /// Its bytes as far as they were captured, with the tag put back.
    pub data: &'b [u8],
}

impl Block<'_> {
    /// Whether the kernel had dropped packets that nobody had asked about yet when it closed this
    /// block. They came before every frame in it: the kernel drops only while it has no open block.
    pub(super) const fn losing(&self) -> bool {
        self.losing
    }

    /// The next frame. None at the end (also where a header makes no sense, which the account of
    /// the capture then shows).
    pub(super) fn next(&mut self) -> Option<Frame<'_>> {
        let at = self.offset;
        if self.left == 0
            || at < mem::size_of::<tpacket_block_desc>()
            || !at.is_multiple_of(mem::align_of::<tpacket3_hdr>())
            || at + mem::size_of::<tpacket3_hdr>() > self.bytes
        {
            return None;
        }
        // SAFETY: inside the block and aligned, both just checked; any bits are a valid header.
        let header = unsafe { self.base.add(at).cast::<tpacket3_hdr>().read() };
        let start = at + usize::from(header.tp_mac);
        let length = header.tp_snaplen as usize;
        if start + length > self.bytes {
            return None;
        }
        self.left -= 1;
        self.offset = at + header.tp_next_offset as usize;
        let ns = u64::from(header.tp_sec) * 1_000_000_000 + u64::from(header.tp_nsec);
        let room = at + mem::size_of::<tpacket3_hdr>() + VLAN_TAG <= start;
        let tagged = header.tp_status & libc::TP_STATUS_VLAN_VALID != 0;
        let tag = (tagged && room && length >= ADDRESSES).then(|| tag_of(&header));
        let shift = if tag.is_some() { VLAN_TAG } else { 0 };
        // SAFETY: `start - shift` is behind the frame's header (`room`) and `start + length` inside
        // the block; the block is ours until dropped, and this borrows it mutably.
        let data = unsafe {
            let first = self.base.add(start - shift).as_ptr();
            std::slice::from_raw_parts_mut(first, length + shift)
        };
        if let Some(tag) = tag {
            data.copy_within(VLAN_TAG..VLAN_TAG + ADDRESSES, 0);
            data[ADDRESSES..ADDRESSES + VLAN_TAG].copy_from_slice(&tag);
        }
        Some(Frame {
            timestamp: Timestamp::from_nanos(ns),
            original_length: header.tp_len + shift as u32,
            data,
        })
    }
}

impl Drop for Block<'_> {
    fn drop(&mut self) {
        // Release: our reads (and the tags we wrote) come before the kernel fills it again.
        status_of(self.base).store(libc::TP_STATUS_KERNEL, Ordering::Release);
    }
}

/// The tag that the kernel took out of the frame, as it stood there.
fn tag_of(header: &tpacket3_hdr) -> [u8; VLAN_TAG] {
    let kind = if header.tp_status & libc::TP_STATUS_VLAN_TPID_VALID != 0 {
        header.hv1.tp_vlan_tpid
    } else {
        libc::ETH_P_8021Q as u16
    };
    let [a, b] = kind.to_be_bytes();
    let [c, d] = (header.hv1.tp_vlan_tci as u16).to_be_bytes();
    [a, b, c, d]
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A ring of one block in ordinary memory, as the kernel would have filled it.
    struct FilledBlock(Vec<u64>);

    const BLOCK: usize = 4096;

    impl FilledBlock {
        fn new(frames: &[(tpacket3_hdr, &[u8])]) -> Self {
            let mut memory = vec![0u64; BLOCK / 8];
            let base = memory.as_mut_ptr().cast::<u8>();
            let first = 48;
            let mut at = first;
            for (header, data) in frames {
                let next = (at + usize::from(header.tp_mac) + data.len()).next_multiple_of(16);
                let header = tpacket3_hdr { tp_next_offset: (next - at) as u32, ..*header };
                // SAFETY: inside `memory` and aligned to 8 bytes.
                unsafe { base.add(at).cast::<tpacket3_hdr>().write(header) };
                // SAFETY: inside `memory`.
                unsafe {
                    let target = base.add(at + usize::from(header.tp_mac));
                    target.copy_from_nonoverlapping(data.as_ptr(), data.len());
                }
                at = next;
            }
            // SAFETY: `memory` begins with the block's description.
            let block = unsafe { &mut *base.cast::<tpacket_block_desc>() };
            block.hdr.bh1.block_status = libc::TP_STATUS_USER;
            block.hdr.bh1.num_pkts = frames.len() as u32;
            block.hdr.bh1.offset_to_first_pkt = first as u32;
            Self(memory)
        }

        fn read<T>(&mut self, look: impl FnOnce(&mut Ring) -> T) -> T {
            let memory = NonNull::new(self.0.as_mut_ptr().cast()).unwrap();
            let ring = Ring { memory, block_bytes: BLOCK, blocks: 1, next: 0 };
            // The memory is not a mapping, so it must not be unmapped.
            let mut ring = mem::ManuallyDrop::new(ring);
            look(&mut ring)
        }
    }

    fn header(status: u32, snaplen: usize, length: u32) -> tpacket3_hdr {
        // SAFETY: a struct of integers.
        let mut header: tpacket3_hdr = unsafe { mem::zeroed() };
        header.tp_status = status;
        header.tp_mac = 86;
        header.tp_snaplen = snaplen as u32;
        header.tp_len = length;
        header.tp_sec = 7;
        header.tp_nsec = 5;
        header
    }

    #[test]
    fn a_tag_that_the_kernel_took_out_stands_where_it_was() {
        let frame: Vec<u8> = (0..60).collect();
        let mut tagged =
            header(libc::TP_STATUS_VLAN_VALID | libc::TP_STATUS_VLAN_TPID_VALID, 60, 100);
        tagged.hv1.tp_vlan_tci = 0x6005;
        tagged.hv1.tp_vlan_tpid = 0x88a8;
        let plain = header(0, 60, 60);
        let mut block = FilledBlock::new(&[(tagged, &frame), (plain, &frame)]);
        block.read(|ring| {
            let mut block = ring.ready().unwrap();
            let first = block.next().unwrap();
            assert_eq!(first.data[..12], frame[..12]);
            assert_eq!(first.data[12..16], [0x88, 0xa8, 0x60, 0x05]);
            assert_eq!(first.data[16..], frame[12..]);
            assert_eq!((first.original_length, first.timestamp.as_nanos()), (104, 7_000_000_005));
            let second = block.next().unwrap();
            assert_eq!((second.data, second.original_length), (&frame[..], 60));
            assert!(block.next().is_none());
        });
    }

    #[test]
    fn a_block_goes_back_to_the_kernel_when_it_has_been_read() {
        let mut block = FilledBlock::new(&[(header(0, 4, 4), b"abcd")]);
        block.read(|ring| {
            assert!(!ring.ready().unwrap().losing());
            assert!(ring.ready().is_none());
        });
    }

    #[test]
    fn a_header_that_points_out_of_its_block_ends_the_block() {
        let mut wild = header(0, BLOCK, BLOCK as u32);
        let mut block = FilledBlock::new(&[(wild, b"")]);
        block.read(|ring| assert!(ring.ready().unwrap().next().is_none()));
        wild = header(0, 4, 4);
        let mut block = FilledBlock::new(&[(wild, b"abcd"), (wild, b"abcd")]);
        // SAFETY: the first frame's header, at 48 bytes.
        unsafe { block.0.as_mut_ptr().add(6).cast::<tpacket3_hdr>().as_mut().unwrap() }
            .tp_next_offset = u32::MAX;
        block.read(|ring| {
            let mut block = ring.ready().unwrap();
            assert!(block.next().is_some());
            assert!(block.next().is_none());
        });
    }
}
