//! What an import was inputs: files read, told apart, and put together as of one drive.

mod error;

use std::borrow::Cow;
use std::fs;
use std::path::{Path, PathBuf};

use crc_fast::CrcAlgorithm;
use profile::{Profile, Simulated, Source, SourceKind};

use super::table::TableOptions;
use super::{Found, Passes, added_up, read as recognized};
use crate::analysis::Series;
use crate::answer::{Answer, Figure};
use crate::experiment::fill::FillResult;
use crate::profiling;
use crate::run::Run;

pub use error::ProfileImportError;

/// What is to be read, and what the user says of it.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct ImportOptions {
    /// Files and folders of one drive.
    pub from: Vec<PathBuf>,
    /// Rates over time of the same drive written a second time.
    pub overwrite_pass: Vec<PathBuf>,
    /// Everything was written over old data.
    pub full: bool,
    /// What the drive holds, in bytes, where nothing else tells it.
    pub capacity_bytes: Option<u64>,
    /// The drive's model, where nothing else tells it.
    pub model: Option<String>,
    /// What the profile is called; None after the drive, the model or a file.
    pub name: Option<String>,
    /// The file that the profile goes to: its name may be the profile's.
    pub output: Option<PathBuf>,
    /// Who measured it.
    pub by: Option<String>,
    /// Where it was published. Its figures count as published, not as measured.
    pub published: Option<String>,
    /// The day of the measurement, as `2026-11-21`; None as the files tell.
    pub when: Option<String>,
    /// How tables are read; the drive's capacity in it is set by the import.
    pub table: TableOptions,
}

/// A profile that was made of files.
#[derive(Clone, Debug, PartialEq)]
pub struct Imported {
    /// The profile.
    pub profile: Profile,
    /// What its fill says of itself, in sentences.
    pub sentences: Vec<String>,
}

/// A file or folder and what it told.
#[derive(Debug)]
struct Piece {
    path: PathBuf,
    /// CRC32C of a file's bytes.
    checksum: Option<u32>,
    source: Source,
    figures: Vec<Figure>,
}

/// Everything that was inputs.
#[derive(Debug)]
struct Inputs {
    pieces: Vec<Piece>,
    /// Rates over time, with their source; and the length of writes, 0 if it isn't known.
    passes: Option<(Passes, Source, u64)>,
    /// The drive's model, if something tells it.
    model: Option<String>,
    /// What kind of drive, if something tells it.
    kind: Option<String>,
    /// What the drive holds, if that is known.
    capacity_bytes: Option<u64>,
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
fn list(paths: &[PathBuf]) -> String {
    paths.iter().map(|path| path.display().to_string()).collect::<Vec<_>>().join(", ")
}

/// Reads files as a profile. `known` is what is known of the drive: it stays where they tell nothing better. `version` is
/// Longtake's, for a note in the profile.
///
/// # Errors
/// [`ProfileImportError`] if something can't be read, is of another drive, or tells nothing of it.
pub fn import(
    options: &ImportOptions,
    known: Option<Profile>,
    version: &str,
) -> Result<Imported, ProfileImportError> {
    let inputs = Inputs::read(options, known.as_ref())?;
    let mut profile = inputs.empty_profile(options, known.as_ref())?;
    let sentences = inputs.judge(&mut profile);
    if profile.figures.is_empty() {
        return Err(ProfileImportError::NothingTold { files: list(&options.from) });
    }
    profile.notes.push(format!("Read in by longtake {version} from {}.", inputs.files()));
    if let Some(mut known) = known {
        // Parameters of a simulation were fitted to other figures.
        known.simulated = Simulated::default();
        profile = profile.merge(known).map_err(ProfileImportError::Merge)?;
    }
    Ok(Imported { profile, sentences })
}

impl Inputs {
    /// Reads everything.
    fn read(options: &ImportOptions, known: Option<&Profile>) -> Result<Self, ProfileImportError> {
        let known_bytes = known.map(|known| known.capacity_bytes);
        let mut inputs = Self {
            pieces: Vec::new(),
            passes: None,
            model: None,
            kind: None,
            capacity_bytes: options.capacity_bytes.or(known_bytes),
        };
        let mut first = Curves::default();
        for path in &options.from {
            inputs.take(path, options, &mut first)?;
        }
        let mut second = Curves::default();
        for path in &options.overwrite_pass {
            inputs.take(path, options, &mut second)?;
        }
        if !options.overwrite_pass.is_empty() && (first.of.is_empty() || second.of.is_empty()) {
            return Err(ProfileImportError::NoFirstPass);
        }
        let (over, written) = (added_up(&second.of), added_up(&first.of));
        if let Some(mut source) = first.source {
            if let Some(second) = &second.source {
                source.origin += &format!(" + {}", second.origin);
            }
            let passes = match inputs.capacity_bytes {
                _ if options.full => Passes { empty: Series::default(), overwrite: written },
                Some(capacity) if over.is_empty() => Passes::of(&written, capacity),
                _ => Passes { empty: written, overwrite: over },
            };
            inputs.passes = Some((passes, source, first.block_bytes));
        }
        Ok(inputs)
    }

    /// What the profile is called.
    fn name(&self, options: &ImportOptions, known: Option<&Profile>) -> String {
        let of_drive = || {
            let what = if options.published.is_some() { "published" } else { "measured" };
            known.map(|known| format!("{}-{what}", known.name))
        };
        let of_file = || {
            let output = options.output.as_ref().or_else(|| options.from.first());
            output.and_then(|path| path.file_stem()).map(|stem| stem.to_string_lossy().into_owned())
        };
        let asked = options.name.clone().or_else(of_drive).or_else(|| options.model.clone());
        let name = asked.or_else(|| self.model.clone()).or_else(of_file).unwrap_or_default();
        profiling::file_name(&name)
    }

    /// A profile without figures.
    fn empty_profile(
        &self,
        options: &ImportOptions,
        known: Option<&Profile>,
    ) -> Result<Profile, ProfileImportError> {
        let name = self.name(options, known);
        let told = known.map(|known| known.model.clone()).or_else(|| options.model.clone());
        let model = told.or_else(|| self.model.clone()).unwrap_or_else(|| name.clone());
        let Some(capacity_bytes) = self.capacity_bytes else {
            return Err(ProfileImportError::NoCapacity { files: list(&options.from) });
        };
        let kind = known.map(|known| known.kind.clone()).or_else(|| self.kind.clone());
        Ok(Profile::new(&name, &model, kind.as_deref().unwrap_or("nvme"), capacity_bytes))
    }

    /// Puts every figure into the profile, better ones first; returns what a fill says of itself.
    fn judge(&self, profile: &mut Profile) -> Vec<String> {
        for piece in &self.pieces {
            profiling::add(profile, &piece.figures, &piece.source);
        }
        let Some((passes, source, block)) = &self.passes else { return Vec::new() };
        let capacity = profile.capacity_bytes;
        let fill = FillResult::of_series(
            &profile.name,
            capacity,
            *block,
            &fine(&passes.empty),
            &fine(&passes.overwrite),
        );
        profiling::add(profile, &fill.figures(), source);
        profile.fill = profiling::fill_curve(&passes.empty, source);
        fill.answer()
    }

    /// The files with their checksums, in a sentence.
    fn files(&self) -> String {
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
        options: &ImportOptions,
        curves: &mut Curves,
    ) -> Result<(), ProfileImportError> {
        let here = || path.to_owned();
        if path.is_dir() {
            let run = Run::read(path)
                .map_err(|reason| ProfileImportError::Folder { path: here(), reason })?;
            let Some(run) = run else { return Err(ProfileImportError::NoResults { path: here() }) };
            return self.take_run(path, None, &run, options);
        }
        refuse_other_logs(path)?;
        let bytes =
            fs::read(path).map_err(|reason| ProfileImportError::File { path: here(), reason })?;
        let sum = Some(crc_fast::checksum(CrcAlgorithm::Crc32Iscsi, &bytes) as u32);
        let table = TableOptions { capacity_bytes: self.capacity_bytes, ..options.table.clone() };
        let found = recognized(&bytes, &table)
            .map_err(|reason| ProfileImportError::Import { path: here(), reason })?;
        let measurement = match found {
            Found::Run(run) => return self.take_run(path, sum, &run, options),
            Found::Fio(measurement) => *measurement,
            Found::Step(step) => step.measurement,
            Found::Log(log) => {
                if curves.histogram.is_some_and(|other| other != log.histogram) {
                    return Err(ProfileImportError::OtherLogs { path: here() });
                }
                curves.histogram = Some(log.histogram);
                curves.add(log.series, self.piece(path, sum, "fio", file_day(path), options));
                curves.block_bytes = curves.block_bytes.max(log.block_bytes);
                return Ok(());
            }
            Found::Table(series) => {
                curves.add(series, self.piece(path, sum, "a table", file_day(path), options));
                curves.tables += 1;
                if curves.tables > 1 {
                    return Err(ProfileImportError::SecondTable { path: here() });
                }
                return Ok(());
            }
        };
        let when = measurement.started_ns.and_then(day_of).or_else(|| file_day(path));
        self.piece(path, sum, &measurement.instrument, when, options);
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
        options: &ImportOptions,
    ) -> Result<(), ProfileImportError> {
        let subject = run.one_drive();
        if subject.is_none() && run.drives() > 0 {
            let (path, drives) = (path.to_owned(), run.drives());
            return Err(ProfileImportError::SeveralDrives { path, drives });
        }
        if let Some(subject) = subject {
            if let Some(known) =
                self.capacity_bytes.filter(|known| *known != subject.capacity_bytes)
            {
                return Err(ProfileImportError::OtherDrive {
                    path: path.to_owned(),
                    capacity_bytes: subject.capacity_bytes,
                    known_bytes: known,
                });
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
        self.piece(path, sum, &instrument, when, options);
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
        options: &ImportOptions,
    ) -> Source {
        let file = path.file_name().map_or_else(|| path.into(), PathBuf::from);
        let mut origin = format!("{instrument}, {}", file.display());
        let kind = match &options.published {
            Some(published) => {
                origin = format!("{published}: {origin}");
                SourceKind::Published
            }
            None => SourceKind::Measured,
        };
        if let Some(by) = &options.by {
            origin += &format!(", by {by}");
        }
        // A publication is older than its copy here.
        let when = if options.published.is_some() { None } else { when };
        let source = Source { kind, origin, when: options.when.clone().or(when) };
        let piece =
            Piece { path: path.to_owned(), checksum, source: source.clone(), figures: Vec::new() };
        self.pieces.push(piece);
        source
    }
}

/// Levels are found among many intervals. A table of fewer lines than this has a line for each level, and is cut into many pieces of
/// equal bytes; with more, lines are samples, whose noise tells which steps are levels.
const LINES_MIN: usize = 20;
const PIECES: usize = 1000;

fn fine(pass: &Series) -> Cow<'_, Series> {
    if (1..LINES_MIN).contains(&pass.len()) {
        Cow::Owned(pass.by_equal_bytes(PIECES))
    } else {
        Cow::Borrowed(pass)
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
fn refuse_other_logs(path: &Path) -> Result<(), ProfileImportError> {
    let name = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
    for other in ["_iops.", "_lat.", "_clat.", "_slat."] {
        if name.contains(other) && name.ends_with(".log") {
            let of = if other == "_iops." { "commands" } else { "latencies" };
            return Err(ProfileImportError::LogOf { path: path.to_owned(), of });
        }
    }
    Ok(())
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::analysis::Point;

    fn lines(count: u64) -> Series {
        let line = |i: u64| Point {
            start_ns: i * 1_000_000_000,
            duration_ns: 1_000_000_000,
            bytes: 100_000_000 + i * 7919 % 13 * 1_000_000,
        };
        Series::new((0..count).map(line).collect()).expect("they follow one another")
    }

    #[test]
    fn a_line_of_a_short_table_is_a_level_and_one_of_a_long_table_is_a_sample() {
        assert_eq!(fine(&lines(4)).len(), PIECES);
        for samples in [60, 5000] {
            assert_eq!(*fine(&lines(samples)), lines(samples));
        }
        let noisy = lines(60);
        let fill =
            FillResult::of_series("it", noisy.total_bytes(), 0, &fine(&noisy), &Series::default());
        assert_eq!(fill.fill.phases.len(), 1, "noise is no level: {:?}", fill.fill.phases);
    }
}
