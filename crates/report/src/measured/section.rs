//! A section of a report: what an experiment found, first in a sentence, then in all of its own words, then in pictures and
//! tables.

use super::figures;
use super::found::{Found, Shown};
use crate::document::Section;
use lab::Figure;

/// Warnings of one run that a section shows, at most; the rest is counted.
const WARNINGS_MAX: usize = 8;
/// Sentences are joined to paragraphs of about this many characters.
const PARAGRAPH: usize = 400;

/// The section of an experiment's results. None if no run has one.
pub(super) fn of<R: Shown>((id, found): &(&'static str, Vec<Found<'_, R>>)) -> Option<Section> {
    if found.is_empty() {
        return None;
    }
    let mut section = Section::new(*id, R::TITLE, answer(found));
    for run in found {
        let warnings = run.result.warnings();
        let more = warnings.len().saturating_sub(WARNINGS_MAX);
        let told = warnings.iter().take(WARNINGS_MAX).map(|warning| labelled(run, found, warning));
        section.warnings.extend(told);
        if more > 0 {
            let counted = format!("There are {more} more such notes in the result.");
            section.warnings.push(labelled(run, found, &counted));
        }
    }
    section.paragraphs.extend(found.first().map(|run| run.result.question().to_owned()));
    for run in found {
        section.paragraphs.extend(paragraphs(run, found));
        section.paragraphs.extend(unknown(run, found));
    }
    section.pictures = R::pictures(found);
    let listed = |run: &Found<'_, R>| -> Vec<Figure> {
        run.result.figures().into_iter().filter(|figure| R::is_listed(&figure.name)).collect()
    };
    let listed: Vec<(&str, Vec<Figure>)> =
        found.iter().map(|run| (run.label, listed(run))).collect();
    section.tables.extend(figures::table("Figures", &listed));
    section.tables.extend(R::tables(found).into_iter().filter(|table| !table.rows.is_empty()));
    Some(section)
}

/// What each run found, in short.
fn answer<R: Shown>(found: &[Found<'_, R>]) -> String {
    let said: Vec<String> =
        found.iter().map(|run| labelled(run, found, &run.result.finding())).collect();
    said.join(" ")
}

fn labelled<R>(run: &Found<'_, R>, found: &[Found<'_, R>], text: &str) -> String {
    if found.len() < 2 { text.to_owned() } else { format!("{}: {text}", run.label) }
}

/// The whole answer in the experiment's own words, without what is among the warnings already.
fn paragraphs<R: Shown>(run: &Found<'_, R>, found: &[Found<'_, R>]) -> Vec<String> {
    let warnings = run.result.warnings();
    let mut paragraphs: Vec<String> = Vec::new();
    for sentence in run.result.answer().into_iter().filter(|said| !warnings.contains(said)) {
        match paragraphs.last_mut() {
            Some(last) if last.chars().count() + sentence.chars().count() < PARAGRAPH => {
                last.push(' ');
                last.push_str(&sentence);
            }
            _ => paragraphs.push(sentence),
        }
    }
    if let Some(first) = paragraphs.first_mut() {
        *first = labelled(run, found, first);
    }
    paragraphs
}

/// How many figures of a grid are not known; those of the table stand there as such.
fn unknown<R: Shown>(run: &Found<'_, R>, found: &[Found<'_, R>]) -> Option<String> {
    let figures = run.result.figures();
    let of_grid: Vec<&Figure> = figures.iter().filter(|f| !R::is_listed(&f.name)).collect();
    let unknown: Vec<&&Figure> = of_grid.iter().filter(|figure| figure.value.is_none()).collect();
    if unknown.is_empty() {
        return None;
    }
    let mut notes: Vec<&str> = unknown.iter().map(|figure| figure.note.as_str()).collect();
    notes.sort_unstable();
    notes.dedup();
    notes.retain(|note| !note.is_empty());
    let why = match notes.len() {
        0 => String::new(),
        _ => format!(" ({})", notes.join("; ")),
    };
    let said =
        format!("{} of {} figures of the grid are not known{why}.", unknown.len(), of_grid.len());
    Some(labelled(run, found, &said))
}
