//! Recordings of what the program writes itself.

use std::collections::BTreeSet;
use std::fs;
use std::ops::ControlFlow;
use std::thread;

use longtake::recording::{
    Builder, EndReason, LinkType, NewArray, Options, Over, Producer, SourceEnd,
};
use longtake::{Array, ByteSize, Recording, Selection, Timestamp};

use crate::harness::scratch;

fn small() -> Options {
    let new = NewArray {
        members: 2,
        member_size: Some(ByteSize(65 << 20)),
        segment: Some(ByteSize(4 << 20)),
        chunk: Some(ByteSize(252 << 10)),
        ..NewArray::default()
    };
    Options { new, memory: ByteSize(16 << 20), ..Options::default() }
}

fn described(producer: &Producer, target: &str) -> Builder {
    Recording::of_producer(producer, target).options(small())
}

#[test]
fn what_several_threads_write_is_recorded_once_each() {
    const THREADS: u32 = 4;
    const EACH: u32 = 500;
    let folder = scratch();
    let target = folder.path().join("array").display().to_string();
    let producer = Producer::new("adc", LinkType::USER0);
    let recording = described(&producer, &target).start().expect("files can be recorded on");
    thread::scope(|scope| {
        for thread in 0..THREADS {
            let producer = producer.clone();
            scope.spawn(move || {
                for n in 0..EACH {
                    let number = thread * EACH + n;
                    let time = Timestamp::from_nanos(1_000_000_000 + u64::from(number));
                    let block = number.to_le_bytes().repeat(100);
                    producer.write(&block, Some(time)).expect("it records");
                }
            });
        }
    });
    producer.close();
    let account = recording.wait().expect("it ends well");
    assert!(account.is_complete(), "{:?}", account.ledger);
    assert_eq!(account.ledger.stored.packets, u64::from(THREADS * EACH));
    assert_eq!(account.reason, EndReason::Source(SourceEnd::Producer));
    let mut found = BTreeSet::new();
    let mut array = Array::open(&target).expect("it is whole");
    array
        .extract(&Selection::default(), |packet| {
            let number = u32::from_le_bytes(packet.data[..4].try_into().expect("4 bytes"));
            assert_eq!(packet.data, number.to_le_bytes().repeat(100));
            assert_eq!(packet.timestamp.as_nanos(), 1_000_000_000 + u64::from(number));
            assert_eq!(packet.interface.name, "adc");
            assert!(found.insert(number), "{number} came twice");
            ControlFlow::Continue(())
        })
        .expect("it can be read");
    assert_eq!(found.len(), (THREADS * EACH) as usize);
}

#[test]
fn a_recording_that_has_enough_tells_its_producer() {
    let folder = scratch();
    let target = folder.path().join("array").display().to_string();
    let producer = Producer::new("adc", LinkType::USER0);
    let options = Options { until_bytes: Some(ByteSize(1 << 20)), ..small() };
    let recording = Recording::of_producer(&producer, &target).options(options);
    let recording = recording.start().expect("files can be recorded on");
    let mut taken = 0;
    while producer.write(&[7; 10_000], None).is_ok() {
        taken += 1;
    }
    let account = recording.wait().expect("it ends well");
    assert_eq!(account.reason, EndReason::Bytes);
    assert_eq!(account.ledger.stored.packets, taken);
    assert_eq!(producer.write(&[7; 10], None), Err(Over));
}

#[test]
fn a_producer_waits_for_no_recording_that_did_not_start() {
    let folder = scratch();
    let thesis = folder.path().join("thesis.txt");
    fs::write(&thesis, "not a member").expect("it can be written");
    let nowhere = thesis.display().to_string();
    let producer = Producer::new("adc", LinkType::USER0);
    assert!(described(&producer, &nowhere).start().is_err());
    assert_eq!(producer.write(&[1], None), Err(Over));
    let producer = Producer::new("adc", LinkType::USER0);
    assert!(described(&producer, &nowhere).run(&mut ()).is_err());
    assert_eq!(producer.write(&[1], None), Err(Over));
}

#[test]
fn a_program_that_lives_in_real_time_is_not_recorded_in_virtual_time() {
    let producer = Producer::new("adc", LinkType::USER0);
    let refused =
        described(&producer, "sim:ideal").run(&mut ()).expect_err("it can't be").to_string();
    assert!(refused.starts_with("program:adc: a program lives in real time"), "{refused}");
}
