//! The attack `udp`: numbered datagrams are sent to a recorder that ends by SIGKILL, in a network of its own.

use std::collections::BTreeMap;
use std::net::UdpSocket;
use std::path::Path;
use std::process::Command;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::Duration;

use anyhow::{Context, Result, anyhow, ensure};
use base::{Random, Timestamp};
use format::{Interface, Packet};
use nix::sched::{CloneFlags, unshare};
use nix::sys::signal::Signal;
use source::capture_file::CaptureFile;
use source::sink::{Ended, Loss, Sink};
use source::udp::past_made_headers;

use super::recording::{Shape, asker, expect_chunks};
use super::stage::Stage;
use crate::soak::found;
use crate::soak::recorder::Recorder;
use crate::vm::account::number;
use crate::vm::programs::run;

/// Datagrams and SIGKILL.
#[derive(Debug)]
pub struct Udp;

const ARRAY: &str = "./array";
const ADDRESS: &str = "127.0.0.1:9700";
/// Datagrams a millisecond, by all senders together.
const PER_MS: u64 = 20;
const HEADER_BYTES: usize = 12;

impl super::Attack for Udp {
    fn name(&self) -> &'static str {
        "udp"
    }

    fn about(&self) -> &'static str {
        "20,000 numbered datagrams a second from several senders, recorded until SIGKILL"
    }

    fn law(&self) -> &'static str {
        "what is extracted was sent, byte for byte, once, and in order for each sender; it has as many packets as were acknowledged \
         at least; holes are not more than the ledger names"
    }

    fn slice_rounds(&self) -> u64 {
        1
    }

    fn round(&self, stage: &mut Stage) -> Result<()> {
        // A thread has a network of its own, and what it starts inherits that.
        thread::scope(|scope| {
            scope
                .spawn(|| {
                    unshare(CloneFlags::CLONE_NEWNET).context("making a network namespace")?;
                    run(Command::new("ip").args(["link", "set", "lo", "up"]))?;
                    alone(stage)
                })
                .join()
                .map_err(|_| anyhow!("the attack itself panicked"))?
        })
    }
}

/// The round, in a network of its own.
fn alone(stage: &mut Stage) -> Result<()> {
    let parity = stage.random.below(2);
    let shape = Shape { members: 2 + parity, member_mib: 64, parity, ring: false, chunk_kib: 64 };
    let flush = *stage.one_of(&[10, 100, 1000]);
    let words = format!(
        "record --json --from udp:{ADDRESS} --to {ARRAY} --kernel-buffer 4MiB --flush-interval {flush}ms {}",
        shape.options()
    );
    let words: Vec<_> = words.split_whitespace().collect();
    let mut recorder = Recorder::start(&mut stage.command(&words))?;
    let senders = 1 + stage.random.below(4) as u32;
    let seed = stage.random.bits();
    let over = AtomicBool::new(false);
    let longest = if stage.slice { 300 } else { 3000 };
    let after = Duration::from_millis(stage.random.below(longest));
    let sent = thread::scope(|scope| -> Result<Vec<u64>> {
        let sender = scope.spawn(|| send(senders, seed, &over));
        let told = recorder.wait_until(|told| told.acknowledged_packets > 0);
        thread::sleep(after);
        let killed = recorder.signal(Signal::SIGKILL);
        over.store(true, Ordering::Relaxed);
        let sent = sender.join().map_err(|_| anyhow!("the sender panicked"))?;
        told.and(killed)?;
        sent
    })?;
    let (_, complaints) = recorder.end()?;
    ensure!(!complaints.contains("panicked"), "the recorder panicked: {complaints}");
    stage.attempts += 1;
    found::settle(&mut asker(stage), ARRAY)?;
    expect_chunks(stage, ARRAY, &recorder.acknowledged, false)?;
    judge(stage, seed, &sent, recorder.acknowledged_packets)
}

/// Sends until it is over. Returns how many datagrams each sender has sent.
fn send(senders: u32, seed: u64, over: &AtomicBool) -> Result<Vec<u64>> {
    let sockets: Vec<UdpSocket> =
        (0..senders).map(|_| UdpSocket::bind("127.0.0.1:0")).collect::<Result<_, _>>()?;
    let mut sent = vec![0; senders as usize];
    let mut random = Random::new(seed);
    while !over.load(Ordering::Relaxed) {
        for _ in 0..PER_MS {
            let sender = random.below(u64::from(senders)) as usize;
            let datagram = datagram(seed, sender as u32, sent[sender]);
            // After the kill nobody listens, and the kernel says so.
            if sockets[sender].send_to(&datagram, ADDRESS).is_ok() {
                sent[sender] += 1;
            }
        }
        thread::sleep(Duration::from_millis(1));
    }
    Ok(sent)
}

/// Sender, number, and bytes that follow from both.
fn datagram(seed: u64, sender: u32, number: u64) -> Vec<u8> {
    let mut random = Random::new(seed ^ u64::from(sender) << 48 ^ number);
    let length = random.below(1200) as usize;
    let mut bytes = Vec::with_capacity(HEADER_BYTES + length);
    bytes.extend_from_slice(&sender.to_le_bytes());
    bytes.extend_from_slice(&number.to_le_bytes());
    bytes.extend((0..length).map(|_| random.bits() as u8));
    bytes
}

/// What is extracted, datagram by datagram.
struct Judge<'a> {
    seed: u64,
    sent: &'a [u64],
    /// The number after the last one, by sender.
    next: BTreeMap<u32, u64>,
    packets: u64,
    holes: u64,
    wrong: Option<String>,
}

impl Judge<'_> {
    fn take(&mut self, data: &[u8]) -> Result<()> {
        let head = data.first_chunk::<HEADER_BYTES>().context("a datagram that is too short")?;
        let (sender, number) = head.split_at(4);
        let sender = u32::from_le_bytes(sender.try_into()?);
        let number = u64::from_le_bytes(number.try_into()?);
        let sent = self.sent.get(sender as usize).context("a datagram of nobody")?;
        // One may be on its way when the kernel refuses the next.
        ensure!(number <= *sent, "datagram {number} of sender {sender} was never sent");
        ensure!(
            data == datagram(self.seed, sender, number),
            "datagram {number} of sender {sender} differs"
        );
        let next = self.next.entry(sender).or_default();
        ensure!(number >= *next, "datagram {number} of sender {sender} comes after {next}");
        self.holes += number - *next;
        *next = number + 1;
        self.packets += 1;
        Ok(())
    }
}

impl Sink for Judge<'_> {
    fn interface(&mut self, _: &Interface) -> u32 {
        0
    }

    fn packet(&mut self, packet: &Packet<'_>) -> Result<(), Ended> {
        if let Err(error) = self.take(past_made_headers(packet.data))
            && self.wrong.is_none()
        {
            self.wrong = Some(error.to_string());
        }
        Ok(())
    }

    fn lost(&mut self, _: u32, _: Loss, _: u64, _: u64) {}

    fn tick(&mut self, _: Timestamp) -> Result<(), Ended> {
        Ok(())
    }
}

fn judge(stage: &mut Stage, seed: u64, sent: &[u64], acknowledged: u64) -> Result<()> {
    let ledger = stage.line(&format!("ledger {ARRAY} --json"))?.code(&[0, 3])?.json()?;
    ensure!(ledger["balances"] == true && ledger["ledger"]["balances"] == true, "{ledger}");
    let extract = format!("extract {ARRAY} --json -y -o extract.pcapng");
    let extract = stage.line(&extract)?.code(&[0, 3])?.json()?;
    let mut judge = Judge { seed, sent, next: BTreeMap::new(), packets: 0, holes: 0, wrong: None };
    let summary = CaptureFile::open(Path::new(&stage.path("extract.pcapng")))?.run(&mut judge)?;
    ensure!(summary.complete, "what was extracted is no whole capture");
    let Judge { packets, holes, wrong, .. } = judge;
    ensure!(wrong.is_none(), "{wrong:?}");
    ensure!(
        packets == number(&extract, "/packets")?
            && packets == number(&ledger, "/on_media/packets")?,
        "{packets} packets: {extract}, {ledger}"
    );
    ensure!(
        packets >= acknowledged,
        "{acknowledged} packets were acknowledged, {packets} are there"
    );
    let mut named = number(&ledger, "/missing/packets")?;
    for (_, lost) in ledger["ledger"]["lost"].as_object().context("no losses in the ledger")? {
        named += number(lost, "/packets")?;
    }
    ensure!(
        holes <= named,
        "{holes} datagrams are missing between others, and {named} are named: {ledger}"
    );
    let offered = number(&ledger, "/ledger/offered/packets")?;
    let all: u64 = sent.iter().sum();
    ensure!(offered <= all + sent.len() as u64, "{offered} packets offered, {all} sent: {ledger}");
    stage.saw_many("datagrams sent", all);
    stage.saw_many("datagrams read back", packets);
    stage.saw_many("datagrams missing and named", holes);
    Ok(())
}
