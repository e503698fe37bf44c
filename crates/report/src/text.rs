//! Text for a terminal: foreign text that can't move the cursor or mislead the eye, and tables of it.

use std::borrow::Cow;
use std::fmt::{self, Display};
use std::sync::atomic::{AtomicUsize, Ordering};

use comfy_table::{CellAlignment, ContentArrangement, presets};

/// A message, escaped, with lines after the first indented: a name with a line end in it can't pass for a message of its own.
pub fn indented(text: &str) -> String {
    let text = escaped(text);
    let flush_left = text.lines().skip(1).any(|line| !line.starts_with(' '));
    if flush_left { text.replace('\n', "\n  ") } else { text.into_owned() }
}

/// Whether a character only shows itself: it does not move the cursor, reverse the direction of writing, or hide.
fn is_harmless(c: char) -> bool {
    if c.is_ascii() {
        return !c.is_ascii_control();
    }
    // What `escape_debug` leaves as it is behind another character: all but control, format, private and unassigned characters,
    // separators of lines, and spaces other than the usual one.
    let mut bytes = *b"x\0\0\0\0";
    let length = 1 + c.encode_utf8(&mut bytes[1..]).len();
    std::str::from_utf8(&bytes[..length]).is_ok_and(|text| text.escape_debug().nth(1) == Some(c))
}

fn escape<'a>(
    text: &'a str,
    keep: impl Fn(char) -> bool,
    put: impl Fn(char, &mut String),
) -> Cow<'a, str> {
    let may_stand = |c: char| is_harmless(c) || keep(c);
    if text.chars().all(may_stand) {
        return Cow::Borrowed(text);
    }
    let mut out = String::with_capacity(text.len() + 16);
    for c in text.chars() {
        if may_stand(c) { out.push(c) } else { put(c, &mut out) }
    }
    Cow::Owned(out)
}

/// A text for a terminal, with its line ends. Every other control or invisible character, which may have come from a medium, a
/// drive or a capture, is shown as an escape: `\u{1b}`.
pub fn escaped(text: &str) -> Cow<'_, str> {
    escape(text, |c| c == '\n', |c, out| out.extend(c.escape_debug()))
}

/// Foreign text for a place in a line: line ends are shown as escapes too.
pub fn inline(text: &str) -> Cow<'_, str> {
    escape(text, |_| false, |c, out| out.extend(c.escape_debug()))
}

/// The same JSON with the control and invisible characters that JSON allows in strings (C1, DEL, directions) written as escapes.
pub fn json_escaped(json: &str) -> Cow<'_, str> {
    let put = |c: char, out: &mut String| {
        for unit in c.encode_utf16(&mut [0; 2]) {
            out.push_str(&format!("\\u{unit:04x}"));
        }
    };
    escape(json, |c| c == '\n', put)
}

/// Columns that text has at most. Longer lines are hard to read.
pub const WIDTH: usize = 100;

/// Columns that a sentence takes at least: with fewer, each word would have a line of its own.
const WIDTH_LEAST: usize = 40;

/// Columns of the terminal that text is printed on.
static COLUMNS: AtomicUsize = AtomicUsize::new(WIDTH);

/// Says how wide the terminal is that text is printed on. Until then it is taken to have [`WIDTH`] columns, and more than that are
/// not used.
pub fn set_columns(columns: usize) {
    COLUMNS.store(columns.clamp(WIDTH_LEAST, WIDTH), Ordering::Relaxed);
}

/// Columns that text may take.
pub fn width() -> usize {
    COLUMNS.load(Ordering::Relaxed)
}

/// Whether every line fits into a terminal.
pub fn fits(text: &str) -> bool {
    text.lines().all(|line| line.chars().count() <= WIDTH)
}

/// A line broken between words so that it fits into a terminal: indented by so many spaces, what follows the first line by two more.
/// A word that is too long for a line has one of its own.
pub fn wrapped(line: &str, indent: usize) -> String {
    let mut lines: Vec<String> = vec![" ".repeat(indent)];
    let mut empty = true;
    for word in line.split(' ') {
        let last = lines.last().map_or(0, |line| line.chars().count());
        if !empty && last + 1 + word.chars().count() > width() {
            lines.push(" ".repeat(indent + 2));
            empty = true;
        }
        if let Some(line) = lines.last_mut() {
            if !empty {
                line.push(' ');
            }
            line.push_str(word);
        }
        empty = false;
    }
    lines.join("\n")
}

/// A plain table; columns in `right` are aligned to the right.
pub fn table(heads: &[&str], right: &[usize]) -> Table {
    let mut table = comfy_table::Table::new();
    table.load_preset(presets::NOTHING).set_content_arrangement(ContentArrangement::Disabled);
    table.set_header(heads.iter().map(|head| inline(head)));
    for &column in right {
        if let Some(column) = table.column_mut(column) {
            column.set_cell_alignment(CellAlignment::Right);
        }
    }
    Table(table)
}

/// A table whose cells are lines: what they hold may come from anywhere, and is escaped.
#[derive(Debug)]
pub struct Table(comfy_table::Table);

impl Table {
    /// Adds a row.
    pub fn add_row<C: Display>(&mut self, cells: impl IntoIterator<Item = C>) {
        let shown = cells.into_iter().map(|cell| inline(&cell.to_string()).into_owned());
        self.0.add_row(shown);
    }
}

impl Display for Table {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

/// A table without spaces at line ends.
pub fn trimmed(table: &Table) -> String {
    table.to_string().lines().map(str::trim_end).collect::<Vec<_>>().join("\n")
}

/// A column of a table for a terminal: a cell for each row.
#[derive(Clone, Debug)]
pub struct TextColumn {
    /// Its head.
    pub head: String,
    /// Whether cells are aligned to the right.
    pub right: bool,
    /// Its cells.
    pub cells: Vec<String>,
}

impl TextColumn {
    /// A column of numbers.
    pub fn right(head: impl Into<String>, cells: impl IntoIterator<Item = String>) -> Self {
        Self { head: head.into(), right: true, cells: cells.into_iter().collect() }
    }

    /// A column of words.
    pub fn left(head: impl Into<String>, cells: impl IntoIterator<Item = String>) -> Self {
        Self { right: false, ..Self::right(head, cells) }
    }
}

/// Tables of these columns side by side, each with `first` in front: as many columns in each as fit into a terminal, of which `indent`
/// columns are taken.
pub fn tables(first: &TextColumn, columns: Vec<TextColumn>, indent: usize) -> Vec<String> {
    let of = |columns: &[TextColumn]| {
        let columns: Vec<&TextColumn> = std::iter::once(first).chain(columns).collect();
        let heads: Vec<&str> = columns.iter().map(|column| column.head.as_str()).collect();
        let right: Vec<usize> = (0..columns.len()).filter(|at| columns[*at].right).collect();
        let mut made = table(&heads, &right);
        for row in 0..first.cells.len() {
            made.add_row(columns.iter().map(|column| column.cells[row].as_str()));
        }
        trimmed(&made)
    };
    let fits = |text: &str| text.lines().all(|line| indent + line.chars().count() <= width());
    let mut tables = Vec::new();
    let mut side_by_side: Vec<TextColumn> = Vec::new();
    for column in columns {
        side_by_side.push(column);
        if side_by_side.len() > 1 && !fits(&of(&side_by_side)) {
            let next = side_by_side.split_off(side_by_side.len() - 1);
            tables.push(of(&side_by_side));
            side_by_side = next;
        }
    }
    tables.push(of(&side_by_side));
    tables
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    #[test]
    fn what_could_move_the_cursor_or_mislead_the_eye_is_escaped_and_all_else_stays() {
        let shown =
            "Überflug 3 \u{b5}s \u{2192} \u{2581}\u{2588} e\u{301} \u{65e5}\u{672c} 'a' \"b\" c\\d";
        assert_eq!(inline(shown), shown);
        assert_eq!(escaped("two\nlines"), "two\nlines");
        assert_eq!(inline("two\nlines\r\u{1b}[2J"), r"two\nlines\r\u{1b}[2J");
        for c in [
            '\u{0}',
            '\u{7f}',
            '\u{9b}',
            '\u{ad}',
            '\u{200b}',
            '\u{2028}',
            '\u{202e}',
            '\u{2066}',
            '\u{e0041}',
        ] {
            for escaped in [inline(&c.to_string()), escaped(&c.to_string())] {
                assert!(escaped.starts_with('\\') && escaped.is_ascii(), "{escaped}");
            }
        }
    }

    #[test]
    fn a_line_is_broken_between_words_and_what_follows_is_indented_further() {
        let words = ["word"; 40].join(" ");
        let text = wrapped(&words, 2);
        assert!(fits(&text) && text.lines().count() == 3, "{text}");
        let indents = text.lines().map(|line| line.len() - line.trim_start().len());
        assert_eq!(indents.collect::<Vec<_>>(), [2, 4, 4]);
        assert_eq!(text.split_whitespace().count(), 40);
        let long = "x".repeat(120);
        assert_eq!(wrapped(&format!("a {long} b"), 0), format!("a\n  {long}\n  b"));
        assert!(!fits(&long));
    }

    #[test]
    fn json_keeps_its_values_though_their_control_characters_are_escaped() {
        let value = json!({"name": "a\u{1b}[2J\u{9b}\u{7f}\u{202e}\u{e0041}\nb"});
        for text in [value.to_string(), format!("{value:#}")] {
            let escaped = json_escaped(&text);
            assert!(
                escaped.chars().all(|c| c == '\n' || (c.is_ascii() && !c.is_control())),
                "{escaped}"
            );
            assert_eq!(serde_json::from_str::<Value>(&escaped).unwrap(), value);
        }
    }
}
