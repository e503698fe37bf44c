//! Looks for planted bugs, two at a time: `hunt NAME=FROM..SEEDS...`, where `nothing` plants none. The seeds below `SEEDS` are tried
//! from `FROM` on, and then those before it. For each bug that it finds it prints a line: the name, the number of the seed, counted
//! from 1, the first line of the message.

use std::cell::Cell;
use std::sync::Mutex;
use std::{env, panic, thread};

use longtake_chaos::adversary::Trick;
use longtake_chaos::{Case, judged};
use recorder::planted::{BUGS, Bug, plant};

const TRICKS: [Trick; 4] =
    [Trick::AnswersEarly, Trick::HidesShort, Trick::DropsFlushes, Trick::SwapsWrites];
/// As much of a message as says how a bug was found.
const CHARACTERS_MAX: usize = 120;

thread_local! {
    static QUIET: Cell<bool> = const { Cell::new(false) };
}

/// What is looked for.
struct Hunted {
    name: String,
    bug: Option<Bug>,
    trick: Option<Trick>,
    from: u64,
    seeds: u64,
}

impl Hunted {
    fn parsed(argument: &str) -> Self {
        let (name, range) = argument.split_once('=').expect("NAME=FROM..SEEDS");
        let (from, seeds) = range.split_once("..").expect("NAME=FROM..SEEDS");
        let number = |text: &str| text.parse().expect("a number");
        let bug = BUGS.into_iter().find(|bug| format!("{bug:?}") == name);
        let trick = TRICKS.into_iter().find(|trick| format!("{trick:?}") == name);
        assert!(bug.is_some() || trick.is_some() || name == "nothing", "{name} is no bug");
        Self { name: name.to_owned(), bug, trick, from: number(from), seeds: number(seeds) }
    }

    /// The first seed that finds it, and how.
    fn find(&self) -> Option<(u64, String)> {
        plant(self.bug);
        let found = (self.from..self.seeds).chain(0..self.from).find_map(|seed| {
            let case = Case { trick: self.trick, ..Case::of(seed) };
            judged(&case, None).err().map(|violation| (seed, violation.message))
        });
        plant(None);
        found
    }
}

fn main() {
    let hunted: Vec<Hunted> =
        env::args().skip(1).map(|argument| Hunted::parsed(&argument)).collect();
    let loud = panic::take_hook();
    panic::set_hook(Box::new(move |info| {
        if !QUIET.get() {
            loud(info);
        }
    }));
    let next = Mutex::new(hunted.iter());
    let work = || {
        QUIET.set(true);
        loop {
            let Some(hunted) = next.lock().unwrap().next() else { return };
            if let Some((seed, message)) = hunted.find() {
                let line = message.lines().next().unwrap_or_default();
                let line: String = line.chars().take(CHARACTERS_MAX).collect();
                println!("{} {} {line}", hunted.name, seed + 1);
            }
        }
    };
    thread::scope(|scope| {
        scope.spawn(work);
        scope.spawn(work);
    });
}
