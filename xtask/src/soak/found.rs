//! What is found of the last take of an array of synthetic packets: every command that reads it must give the same account.

use std::fs;
use std::path::Path;
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, ensure};
use serde_json::Value;

use crate::vm::account::Account;
use crate::vm::handed::Files;
use crate::vm::packets;

/// The kernel completes what was under way when a recorder was killed within this.
const SETTLES_WITHIN: Duration = Duration::from_secs(60);
const LOOK_EVERY: Duration = Duration::from_millis(20);

/// Runs the program with some words to its end: what it printed, its exit code, its complaints.
pub type Ask<'a> = dyn FnMut(&[&str]) -> Result<(Vec<u8>, i32, String)> + 'a;

/// Waits until nothing records on an array any more.
///
/// # Errors
/// If it can't be opened, or something records for long.
pub fn settle(ask: &mut Ask<'_>, array: &str) -> Result<()> {
    let deadline = Instant::now() + SETTLES_WITHIN;
    loop {
        let (shown, code, complaint) = ask(&["array", "show", array, "--json"])?;
        ensure!(code == 0, "array show ended with {code}: {complaint}");
        let shown: Value = serde_json::from_slice(&shown).context("array show --json")?;
        if shown["recording"] == false {
            return Ok(());
        }
        ensure!(Instant::now() < deadline, "something still records: {shown}");
        thread::sleep(LOOK_EVERY);
    }
}

/// All that the program tells of an array's last take, which must agree. The packets have `size` bytes and come from so many
/// queues; they are extracted to `file` in between.
///
/// # Errors
/// If two commands disagree, or a packet is wrong.
pub fn account(
    ask: &mut Ask<'_>,
    array: &str,
    file: &Path,
    size: u16,
    queues: u16,
) -> Result<Account> {
    settle(ask, array)?;
    let path = file.to_str().context("the folder's path is text")?;
    let mut files = Files::default();
    let commands: [(&str, &[&str]); 4] = [
        ("ledger", &["ledger", array, "--json"]),
        ("array", &["array", "show", array, "--json", "--chunks"]),
        ("check", &["array", "check", array, "--json"]),
        ("extract", &["extract", array, "--take", "last", "--output", path, "-y", "--json"]),
    ];
    for (name, words) in commands {
        let (printed, code, complaint) = ask(words)?;
        files.0.insert(format!("take.{name}"), printed);
        let ended = format!("{complaint}exit code {code}\n");
        files.0.insert(format!("take.{name}.errors"), ended.into_bytes());
    }
    let held = packets::held(file, size, queues)?;
    files.0.insert("take.packets".to_owned(), held.to_string().into_bytes());
    fs::remove_file(file)?;
    Account::of(&files, "take")
}
