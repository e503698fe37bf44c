//! Every reason not to write a drive, made real on loop devices, and that nothing but the right
//! confirmation gets past them.

use std::fs::{self, OpenOptions};
use std::os::unix::fs::{FileExt, OpenOptionsExt, symlink};
use std::path::Path;
use std::process::{Command, Stdio};

use crate::safety_rig::{
    Child, Loop, MIB, Mount, Swap, folder, image, run, superblock_header, text, try_run,
};
use longtake_device::holders::{Use, other_openers};
use longtake_device::safety::{self, Purpose, Refusal, SafetyVerdict};
use longtake_device::signature::Content;

/// The mounts in this namespace that a verdict names: device and mount point. (A test beside this one
/// makes another namespace, which starts with a copy of all mounts that there are.)
fn mounts(verdict: &SafetyVerdict) -> Vec<(&Path, &Path)> {
    let mounted = |refusal| match refusal {
        &Refusal::Mounted { ref device, ref mount_point, process: None, .. } => {
            Some((device.as_path(), mount_point.as_path()))
        }
        _ => None,
    };
    verdict.refusals.iter().filter_map(mounted).collect()
}

fn holders(verdict: &SafetyVerdict) -> Vec<(Use, &str)> {
    fn held(refusal: &Refusal) -> Option<(Use, &str)> {
        match refusal {
            Refusal::Held { holder, .. } => Some((holder.how, holder.by.as_str())),
            _ => None,
        }
    }
    verdict.refusals.iter().filter_map(held).collect()
}

fn is_in_use(refusal: &Refusal) -> bool {
    matches!(refusal, Refusal::InUse { .. })
}

fn confirm(device: &Loop) -> Vec<String> {
    vec![device.text().to_owned()]
}

#[test]
fn an_empty_drive_is_written_only_when_it_is_confirmed_exactly() {
    let device = Loop::new(8 * MIB);
    assert_eq!(safety::inspect(&device.path).refusals, []);

    for wrong in [vec![], vec![device.text().to_uppercase()], vec![format!("{} ", device.text())]] {
        let refusals = safety::authorize(&device.path, &wrong).unwrap_err();
        let [Refusal::NotConfirmed { argument, size_bytes, .. }] = refusals.as_slice() else {
            panic!("{refusals:?}")
        };
        assert_eq!(*argument, format!("--erase {}", device.text()));
        assert_eq!(*size_bytes, 8 * MIB);
        assert!(refusals[0].to_string().contains(argument.as_str()));
    }

    let authorized = safety::authorize(&device.path, &confirm(&device)).unwrap();
    assert_eq!(authorized.path(), device.path);
    assert!(authorized.covers(&fs::File::open(&device.path).unwrap()).unwrap());
    assert!(!authorized.covers(&fs::File::open("/dev/null").unwrap()).unwrap());
    assert_eq!(authorized.number(), authorized.drive().unwrap().number);
}

#[test]
fn while_a_claim_lives_nobody_else_gets_the_drive() {
    let device = Loop::new(32 * MIB);
    let authorized = safety::authorize(&device.path, &confirm(&device)).unwrap();
    let refusals = safety::authorize(&device.path, &confirm(&device)).unwrap_err();
    assert!(refusals.iter().any(is_in_use), "{refusals:?}");

    // What the claim's owner does with it, a second tool can't: mkfs and mount both want it alone.
    let claim = authorized.claim().unwrap();
    claim.write_all_at(&[0; 4096], 0).unwrap();
    assert!(!try_run("mkfs.ext4", &["-q", device.text()]).status.success());
    assert!(!try_run("swapon", &[device.text()]).status.success());
    drop(authorized);
    // A process that another test is starting may have a copy of the claim until it runs its program.
    while !try_run("mkfs.ext4", &["-q", device.text()]).status.success() {
        std::thread::sleep(std::time::Duration::from_millis(20));
    }
    let refusals = safety::authorize(&device.path, &confirm(&device)).unwrap_err();
    assert!(
        matches!(&refusals[..], [Refusal::Signature { signature, .. }] if signature.name == "ext4")
    );
}

#[test]
fn a_mounted_drive_is_refused_by_every_name_it_has() {
    let device = Loop::new(64 * MIB);
    run("mkfs.ext4", &["-q", device.text()]);
    let mount = Mount::new(&device.path);
    let links = folder();
    let link = links.path().join("a-link");
    symlink(&device.path, &link).unwrap();
    let chain = links.path().join("a-link-to-it");
    symlink(&link, &chain).unwrap();
    let node = links.path().join("another-node");
    let minor = device.text().trim_start_matches("/dev/loop");
    run("mknod", &[text(&node), "b", "7", minor]);

    for path in [&device.path, &link, &chain, &node] {
        let verdict = safety::inspect(path);
        assert_eq!(mounts(&verdict), [(device.path.as_path(), mount.point.path())], "{path:?}");
        assert!(!verdict.refusals.iter().any(is_in_use), "told twice: {:?}", verdict.refusals);
        let refusals = safety::authorize(path, &confirm(&device)).unwrap_err();
        assert!(refusals.iter().all(|refusal| !matches!(refusal, Refusal::NotConfirmed { .. })));
        assert!(refusals.iter().any(|refusal| matches!(refusal, Refusal::Mounted { .. })));
    }
}

#[test]
fn a_bind_mount_alone_still_counts() {
    let device = Loop::new(320 * MIB);
    run("mkfs.xfs", &["-q", device.text()]);
    let first = Mount::new(&device.path);
    fs::create_dir(first.point.path().join("inside")).unwrap();
    let second = Mount::bind(&first.point.path().join("inside"));
    first.unmount();
    let verdict = safety::inspect(&device.path);
    assert_eq!(mounts(&verdict), [(device.path.as_path(), second.point.path())]);
}

#[test]
fn a_mount_in_another_namespace_is_found_with_a_process_that_has_it() {
    let device = Loop::new(64 * MIB);
    run("mkfs.ext4", &["-q", device.text()]);
    let point = folder();
    let script = format!("mount {} {} && echo up && exec cat", device.text(), text(point.path()));
    let mut child = Child(
        Command::new("unshare")
            .args(["--mount", "sh", "-c", &script])
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap(),
    );
    let mut line = String::new();
    let output = child.0.stdout.take().unwrap();
    std::io::BufRead::read_line(&mut std::io::BufReader::new(output), &mut line).unwrap();
    assert_eq!(line, "up\n");

    let verdict = safety::inspect(&device.path);
    let process = verdict.refusals.iter().find_map(|refusal| match refusal {
        Refusal::Mounted { process, .. } => Some(*process),
        _ => None,
    });
    assert_eq!(process, Some(Some(child.0.id())), "{:?}", verdict.refusals);
}

#[test]
fn a_drive_with_a_mounted_partition_is_refused_and_its_other_partition_is_not() {
    let folder = folder();
    let image = image(folder.path(), "image", 96 * MIB);
    let device = Loop::partitioned(&image, "label: gpt\nsize=32MiB\nsize=32MiB\n");
    let (first, second) = (device.partition(1), device.partition(2));
    run("mkfs.ext4", &["-q", text(&first)]);
    let mount = Mount::new(&first);

    let verdict = safety::inspect(&device.path);
    assert_eq!(mounts(&verdict), [(first.as_path(), mount.point.path())]);
    let partitions = [first.clone(), second.clone()].to_vec();
    let path = device.path.clone();
    assert!(verdict.refusals.contains(&Refusal::Partitioned { path, partitions }));
    let table = |refusal: &Refusal| {
        matches!(refusal, Refusal::Signature { signature, .. }
            if signature.kind == Content::PartitionTable)
    };
    assert!(verdict.refusals.iter().any(table));

    assert_eq!(mounts(&safety::inspect(&first)), [(first.as_path(), mount.point.path())]);
    assert_eq!(safety::inspect(&second).refusals, []);
    let authorized = safety::authorize(&second, &[text(&second).to_owned()]).unwrap();
    assert_eq!(authorized.drive().unwrap().partition_of.as_deref(), Some(device.path.as_path()));
}

#[test]
fn swap_space_is_refused() {
    let device = Loop::new(16 * MIB);
    let swap = Swap::on(&device.path);
    let verdict = safety::inspect(&device.path);
    let refusal = Refusal::Swap { path: device.path.clone(), device: device.path.clone() };
    assert!(verdict.refusals.contains(&refusal), "{:?}", verdict.refusals);
    assert!(refusal.to_string().contains("swapoff"));
    drop(swap);
    let [Refusal::Signature { signature, .. }] = &safety::inspect(&device.path).refusals[..] else {
        panic!("the swap header stays behind")
    };
    assert_eq!((signature.kind, signature.offset), (Content::Swap, 4086));
}

#[test]
fn a_drive_below_a_loop_device_is_refused_and_so_is_the_loop_device_over_a_mounted_drive() {
    let below = Loop::new(64 * MIB);
    let above = Loop::on(&below.path, &[]);
    let verdict = safety::inspect(&below.path);
    assert_eq!(holders(&verdict), [(Use::Loop, above.text())]);
    assert!(verdict.refusals[0].to_string().contains("losetup --detach"));
    assert_eq!(safety::inspect(&above.path).refusals, []);

    run("mkfs.ext4", &["-q", below.text()]);
    let mount = Mount::new(&below.path);
    let verdict = safety::inspect(&above.path);
    assert_eq!(mounts(&verdict), [(below.path.as_path(), mount.point.path())]);
}

#[test]
fn two_loop_devices_on_one_file_refuse_each_other_and_the_file() {
    let folder = folder();
    let image = image(folder.path(), "image", 8 * MIB);
    let one = Loop::on(&image, &[]);
    let verdict = safety::inspect(&image);
    assert_eq!(holders(&verdict), [(Use::Loop, one.text())]);
    let other = Loop::on(&image, &[]);
    assert_eq!(holders(&safety::inspect(&one.path)), [(Use::Loop, other.text())]);
    // The path that the loop devices were given is gone; the file is still the same.
    let moved = folder.path().join("moved");
    fs::rename(&image, &moved).unwrap();
    assert_eq!(holders(&safety::inspect(&moved)).len(), 2);
}

#[test]
fn every_member_of_a_mounted_btrfs_is_refused_though_the_mount_table_names_one() {
    let (one, other) = (Loop::new(160 * MIB), Loop::new(160 * MIB));
    run("mkfs.btrfs", &["--quiet", "--data", "raid1", one.text(), other.text()]);
    let _mount = Mount::new(&one.path);
    for device in [&one, &other] {
        let verdict = safety::inspect(&device.path);
        let held = holders(&verdict).iter().any(|(how, _)| *how == Use::Btrfs);
        assert!(held, "{:?}", verdict.refusals);
    }
    assert_eq!(mounts(&safety::inspect(&one.path)).len(), 1);
}

#[test]
fn a_drive_that_somebody_opened_exclusively_is_refused_with_the_process() {
    let device = Loop::new(8 * MIB);
    let _held =
        OpenOptions::new().read(true).custom_flags(libc::O_EXCL).open(&device.path).unwrap();
    let refusals = safety::inspect(&device.path).refusals;
    let [Refusal::InUse { processes, .. }] = &refusals[..] else { panic!("{refusals:?}") };
    let own = format!("(pid {})", std::process::id());
    assert!(processes.iter().any(|process| process.ends_with(&own)), "{processes:?}");
}

#[test]
fn other_processes_that_have_a_file_open_are_named_and_this_one_is_not() {
    let folder = folder();
    let path = image(folder.path(), "image", MIB);
    let open = || fs::File::open(&path).unwrap();
    let _own = open();
    let sleeping = Command::new("sleep").arg("60").stdin(open()).spawn().unwrap();
    let child = Child(sleeping);
    let link = folder.path().join("link");
    symlink(&path, &link).unwrap();
    let found = other_openers(&[link, folder.path().join("missing")]);
    let is = |pid: u32| move |process: &String| process.ends_with(&format!("(pid {pid})"));
    assert!(found.iter().any(is(child.0.id())), "{found:?}");
    assert!(!found.iter().any(is(std::process::id())), "{found:?}");
}

#[test]
fn a_write_protected_drive_is_refused() {
    let folder = folder();
    let image = image(folder.path(), "image", 8 * MIB);
    let device = Loop::on(&image, &["--read-only"]);
    let path = device.path.clone();
    assert_eq!(safety::inspect(&device.path).refusals, [Refusal::ReadOnly { path }]);
}

#[test]
fn a_longtake_array_is_replaced_or_continued_only_on_purpose() {
    let device = Loop::new(8 * MIB);
    let confirmed = confirm(&device);
    let refusals = safety::authorize_for(&device.path, &[], Purpose::Continue).unwrap_err();
    assert!(matches!(&refusals[..], [Refusal::NoArray { .. }]), "{refusals:?}");

    let writer = OpenOptions::new().write(true).open(&device.path).unwrap();
    writer.write_all_at(&superblock_header([0xAB; 16]), 0).unwrap();
    writer.write_all_at(&superblock_header([0xAB; 16]), 8 * MIB - 65_536).unwrap();
    drop(writer);
    let refusals = safety::authorize(&device.path, &confirmed).unwrap_err();
    let [refusal @ Refusal::LongtakeArray { signature, .. }] = &refusals[..] else {
        panic!("{refusals:?}")
    };
    assert!(signature.name.contains("abababab"), "{}", signature.name);
    assert!(refusal.to_string().contains("--force-new-array"));

    assert!(safety::authorize_for(&device.path, &[], Purpose::Replace).is_err());
    assert!(safety::authorize_for(&device.path, &confirmed, Purpose::Replace).is_ok());
    assert!(safety::authorize_for(&device.path, &[], Purpose::Continue).is_ok());

    // Anything foreign beside it is refused for every purpose.
    let writer = OpenOptions::new().write(true).open(&device.path).unwrap();
    writer.write_all_at(b"SWAPSPACE2", 4086).unwrap();
    drop(writer);
    for purpose in [Purpose::Create, Purpose::Replace, Purpose::Continue] {
        let refusals = safety::authorize_for(&device.path, &confirmed, purpose).unwrap_err();
        assert!(refusals.iter().any(|refusal| matches!(refusal, Refusal::Signature { .. })));
    }
}

#[test]
fn a_file_needs_no_confirmation_but_must_hold_nothing_of_anybodys() {
    let folder = folder();
    let fresh = folder.path().join("member0");
    let authorized = safety::authorize(&fresh, &[]).unwrap();
    assert!(authorized.drive().is_none() && authorized.claim().is_none());

    let empty = image(folder.path(), "sparse", 40 * MIB);
    let authorized = safety::authorize(&empty, &[]).unwrap();
    assert!(authorized.covers(&fs::File::open(&empty).unwrap()).unwrap());

    fs::write(folder.path().join("zeros"), vec![0; 3 * MIB as usize]).unwrap();
    assert!(safety::authorize(&folder.path().join("zeros"), &[]).is_ok());

    let letter = folder.path().join("letter");
    fs::write(&letter, [vec![0; 70_000], b"Dear Ann".to_vec()].concat()).unwrap();
    let refusals = safety::authorize(&letter, &["another".to_owned()]).unwrap_err();
    assert_eq!(refusals, [Refusal::ForeignContent { path: letter.clone(), offset: 70_000 }]);
    assert!(refusals[0].to_string().contains(&format!("--erase {}", text(&letter))));
    assert!(safety::authorize(&letter, &[text(&letter).to_owned()]).is_ok(), "its path was typed");

    let disk = folder.path().join("disk");
    fs::write(&disk, b"QFI\xFB and so on").unwrap();
    let refusals = safety::authorize(&disk, &[text(&disk).to_owned()]).unwrap_err();
    assert!(refusals[0].to_string().contains("qcow2"), "{}", refusals[0]);

    let member = folder.path().join("member1");
    fs::write(&member, [superblock_header([1; 16]), vec![9; 4096]].concat()).unwrap();
    let refusals = safety::authorize(&member, &[]).unwrap_err();
    assert!(matches!(&refusals[..], [Refusal::LongtakeArray { .. }]), "{refusals:?}");
    assert!(safety::authorize_for(&member, &[], Purpose::Continue).is_ok());
}

#[test]
fn a_swap_file_is_refused() {
    let folder = folder();
    let path = folder.path().join("swap");
    fs::write(&path, vec![0; 4 * MIB as usize]).unwrap();
    let _swap = Swap::on(&path);
    let refusals = safety::inspect(&path).refusals;
    assert!(refusals.iter().any(|refusal| matches!(refusal, Refusal::Swap { .. })), "{refusals:?}");
    let beside = image(folder.path(), "beside", 4 * MIB);
    assert_eq!(safety::inspect(&beside).refusals, [], "no swap, whatever else is");
}

#[test]
fn what_is_no_drive_is_refused_and_a_misspelt_drive_is_not_created_as_a_file() {
    let folder = folder();
    let dangling = folder.path().join("dangling");
    symlink("/nowhere/at/all", &dangling).unwrap();
    for (path, found) in [
        (folder.path(), "a directory"),
        (Path::new("/dev/null"), "a character device"),
        (Path::new("/dev/nvme77n1"), "does not exist"),
        (Path::new("/nowhere/member0"), "does not exist"),
        (&dangling, "does not exist"),
    ] {
        let refusals = safety::authorize(path, &[]).unwrap_err();
        assert_eq!(refusals.len(), 1, "{refusals:?}");
        assert!(refusals[0].to_string().contains(found), "{}", refusals[0]);
    }
}

#[test]
fn a_verdict_prints_as_json_with_the_reason_named() {
    let device = Loop::new(16 * MIB);
    run("mkswap", &[device.text()]);
    let json = serde_json::to_value(safety::inspect(&device.path)).unwrap();
    assert_eq!(json["refusals"][0]["refusal"], "signature");
    assert_eq!(json["refusals"][0]["signature"]["name"], "swap");
    assert_eq!(json["drive"]["kind"], "loop");
    assert_eq!(json["drive"]["size_bytes"], 16 * MIB);
}
