//! What an import was given: files read, told apart, and put together as of one drive.

use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, bail};
use lab::analysis::Series;
use lab::experiment::fill::FillResult;
use lab::importing::table::TableOptions;
use lab::importing::{Found, ImportError, Passes, added_up, read as recognized};
use lab::run::Run;
use lab::{Answer, Figure, profiling};
use profile::{Profile, Source, SourceKind};

use crate::profiles::arguments::ImportArguments;

/// A file or folder and what it told.
struct Piece {
    path: PathBuf,
    /// CRC32C of a file's bytes.
    checksum: Option<u32>,
    source: Source,
    figures: Vec<Figure>,
}

/// Everything that was given.
pub struct Given {
    pieces: Vec<Piece>,
    /// Rates over time, with their source; and the length of writes, 0 if it isn't known.
    passes: Option<(Passes, Source, u64)>,
    /// The drive's model, if something tells it.
    pub model: Option<String>,
    /// What kind of drive, if something tells it.
    pub kind: Option<String>,
    /// What the drive holds, if that is known.
    pub capacity_bytes: Option<u64>,
}

/// What series there are.
#[derive(Default)]
struct Curves {
    of: Vec<Series>,
    source: Option<Source>,
    block_bytes: u64,
    /// Whether fio's logs are histograms; None without any.
    histogram: Option<bool>,
    tables: usize,
}

/// Paths in a sentence.
pub fn list(paths: &[PathBuf]) -> String {
    paths.iter().map(|path| path.display().to_string()).collect::<Vec<_>>().join(", ")
}

/// Reads everything.
///
/// # Errors
/// If something can't be read, or is of another drive.
pub fn read(arguments: &ImportArguments, known: Option<&Profile>) -> Result<Given> {
    let known_bytes = known.map(|known| known.capacity_bytes);
    let mut given = Given {
        pieces: Vec::new(),
        passes: None,
        model: None,
        kind: None,
        capacity_bytes: arguments.capacity.map(|size| size.0).or(known_bytes),
    };
    let mut first = Curves::default();
    for path in &arguments.from {
        given.take(path, arguments, &mut first)?;
    }
    let mut second = Curves::default();
    for path in &arguments.overwrite_pass {
        given.take(path, arguments, &mut second)?;
    }
    if !arguments.overwrite_pass.is_empty() && (first.of.is_empty() || second.of.is_empty()) {
        bail!(
            "--overwrite-pass is for rates over time, beside those of the first pass: give tables or logs of both"
        );
    }
    let (over, written) = (added_up(&second.of), added_up(&first.of));
    if let Some(mut source) = first.source {
        if let Some(second) = &second.source {
            source.origin += &format!(" + {}", second.origin);
        }
        let passes = match given.capacity_bytes {
            _ if arguments.full => Passes { empty: Series::default(), overwrite: written },
            Some(capacity) if over.is_empty() => Passes::of(&written, capacity),
            _ => Passes { empty: written, overwrite: over },
        };
        given.passes = Some((passes, source, first.block_bytes));
    }
    Ok(given)
}

impl Given {
    /// Puts every figure into the profile, better ones first; returns what a fill says of itself.
    ///
    /// # Errors
    /// If the drive's capacity isn't known where it must be.
    pub fn judge(&self, profile: &mut Profile) -> Result<Vec<String>> {
        for piece in &self.pieces {
            profiling::add(profile, &piece.figures, &piece.source);
        }
        let Some((passes, source, block)) = &self.passes else { return Ok(Vec::new()) };
        let capacity = self.capacity_bytes.context("the drive's capacity")?;
        let fill = FillResult::of_series(
            &profile.name,
            capacity,
            *block,
            &passes.empty,
            &passes.overwrite,
        );
        profiling::add(profile, &fill.figures(), source);
        Ok(fill.answer())
    }

    /// The files with their checksums, in a sentence.
    pub fn files(&self) -> String {
        let file = |piece: &Piece| match piece.checksum {
            Some(sum) => format!("{} (CRC32C {sum:08x})", piece.path.display()),
            None => piece.path.display().to_string(),
        };
        self.pieces.iter().map(file).collect::<Vec<_>>().join(", ")
    }

    /// Reads one file or folder.
    fn take(
        &mut self,
        path: &Path,
        arguments: &ImportArguments,
        curves: &mut Curves,
    ) -> Result<()> {
        let failed = || format!("reading {}", path.display());
        if path.is_dir() {
            let Some(run) = Run::read(path).with_context(failed)? else {
                bail!(
                    "{} holds no results: give a folder that `longtake measure` wrote",
                    path.display()
                );
            };
            return self.take_run(path, None, &run, arguments);
        }
        refuse_other_logs(path)?;
        let bytes = fs::read(path).with_context(failed)?;
        let sum = Some(format::crc::crc32c(&bytes));
        let options = TableOptions {
            time_column: arguments.time_column.clone(),
            rate_column: arguments.rate_column.clone(),
            time_unit: arguments.time_unit,
            rate_unit: arguments.rate_unit,
            capacity_bytes: self.capacity_bytes,
        };
        let found = recognized(&bytes, &options)
            .map_err(|error| beside(path, error))
            .with_context(failed)?;
        let measurement = match found {
            Found::Run(run) => return self.take_run(path, sum, &run, arguments),
            Found::Fio(measurement) => *measurement,
            Found::Step(step) => step.measurement,
            Found::Log(log) => {
                if curves.histogram.is_some_and(|other| other != log.histogram) {
                    bail!(
                        "{} tells the same bytes as the logs before it: give those of bandwidth or those of histograms, not both",
                        path.display()
                    );
                }
                curves.histogram = Some(log.histogram);
                curves.add(log.series, self.piece(path, sum, "fio", file_day(path), arguments));
                curves.block_bytes = curves.block_bytes.max(log.block_bytes);
                return Ok(());
            }
            Found::Table(series) => {
                curves.add(series, self.piece(path, sum, "a table", file_day(path), arguments));
                curves.tables += 1;
                if curves.tables > 1 {
                    bail!(
                        "{} is the second table: give one for each pass, the second with --overwrite-pass",
                        path.display()
                    );
                }
                return Ok(());
            }
        };
        let when = measurement.started_ns.and_then(day_of).or_else(|| file_day(path));
        self.piece(path, sum, &measurement.instrument, when, arguments);
        if let Some(piece) = self.pieces.last_mut() {
            piece.figures = profiling::workload_figures(&measurement);
        }
        Ok(())
    }

    fn take_run(
        &mut self,
        path: &Path,
        sum: Option<u32>,
        run: &Run,
        arguments: &ImportArguments,
    ) -> Result<()> {
        let subject = match run.subjects.as_slice() {
            [subject] => Some(subject),
            [] => None,
            several => bail!(
                "{} is of {} drives, and their figures are of all together: measure one alone",
                path.display(),
                several.len()
            ),
        };
        if let Some(subject) = subject {
            if let Some(known) =
                self.capacity_bytes.filter(|known| *known != subject.capacity_bytes)
            {
                bail!(
                    "{} is of a drive of {} bytes, but --drive, --capacity or what was read before says {known}: import drives \
                     one by one",
                    path.display(),
                    subject.capacity_bytes
                );
            }
            self.capacity_bytes = Some(subject.capacity_bytes);
            self.kind.get_or_insert_with(|| subject.kind.clone());
            if self.model.is_none() {
                self.model.clone_from(&subject.model);
            }
        }
        let version = if run.version.is_empty() { "" } else { " " };
        let instrument = format!("longtake{version}{}", run.version);
        let when = day_of(run.started_ns).filter(|_| run.started_ns > 0).or_else(|| file_day(path));
        self.piece(path, sum, &instrument, when, arguments);
        let mut figures = run.figures();
        for (_, step) in &run.measurements {
            figures.extend(profiling::workload_figures(&step.measurement));
        }
        if let Some(piece) = self.pieces.last_mut() {
            piece.figures = figures;
        }
        Ok(())
    }

    /// Notes where figures come from.
    fn piece(
        &mut self,
        path: &Path,
        checksum: Option<u32>,
        instrument: &str,
        when: Option<String>,
        arguments: &ImportArguments,
    ) -> Source {
        let file = path.file_name().map_or_else(|| path.into(), PathBuf::from);
        let mut origin = format!("{instrument}, {}", file.display());
        let kind = match &arguments.published {
            Some(published) => {
                origin = format!("{published}: {origin}");
                SourceKind::Published
            }
            None => SourceKind::Measured,
        };
        if let Some(by) = &arguments.by {
            origin += &format!(", by {by}");
        }
        // A publication is older than its copy here.
        let when = if arguments.published.is_some() { None } else { when };
        let source = Source { kind, origin, when: arguments.when.clone().or(when) };
        let piece =
            Piece { path: path.to_owned(), checksum, source: source.clone(), figures: Vec::new() };
        self.pieces.push(piece);
        source
    }
}

impl Curves {
    fn add(&mut self, series: Series, source: Source) {
        self.of.push(series);
        match &mut self.source {
            None => self.source = Some(source),
            // The logs of one run, each in its own words.
            Some(all) => all.origin += &format!(" + {}", source.origin),
        }
    }
}

/// fio's other logs look the same inside.
fn refuse_other_logs(path: &Path) -> Result<()> {
    let name = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
    for other in ["_iops.", "_lat.", "_clat.", "_slat."] {
        if name.contains(other) && name.ends_with(".log") {
            bail!(
                "{} is fio's log of {}, not of bytes: give the one with _bw (write_bw_log) or _hist (write_hist_log) in its name",
                path.display(),
                if other == "_iops." { "commands" } else { "latencies" }
            );
        }
    }
    Ok(())
}

/// What is wrong with a file that was probably meant otherwise.
fn beside(path: &Path, error: ImportError) -> anyhow::Error {
    let profile = path.extension().is_some_and(|extension| extension == "toml");
    let error = anyhow::Error::new(error);
    if profile {
        return error.context(
            "a TOML file is a profile already: copy it into your folder of profiles (`longtake profiles list` says where)",
        );
    }
    error
}

fn day_of(ns: u64) -> Option<String> {
    let time = jiff::Timestamp::from_nanosecond(ns.into()).ok()?;
    Some(time.strftime("%F").to_string())
}

/// The day on which a file was written.
fn file_day(path: &Path) -> Option<String> {
    let written = fs::metadata(path).and_then(|data| data.modified()).ok()?;
    Some(jiff::Timestamp::try_from(written).ok()?.strftime("%F").to_string())
}
