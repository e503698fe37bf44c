//! A report as one HTML file that needs nothing else: no network, no fonts, no server.
//!
//! The finding comes first, then how it was found. Each picture is there as static SVG, for paper and
//! for pages whose script doesn't run, and as a chart to look into; its data is in a table below it, and
//! the whole document is in the page as JSON (`#longtake-data`).

mod data;

use std::fmt::Write as _;

use crate::axis::grouped;
use crate::document::{Alignment, Cell, Column, Document, Section, Table, Value};
use crate::echarts::{self, Chart};
use crate::escape::{json_in_script, markup};
use crate::palette::{self, Marker};
use crate::picture::{Kind, Picture};
use crate::svg;

/// Text of so many bytes without a space stays on one line: a claim's or a drive's name.
const WORD_MAX: usize = 26;

const CSS: &str = include_str!("page.css");
const SCRIPT: &str = include_str!("page.js");

/// Nothing may be fetched, whatever a name in the report says.
const POLICY: &str = "default-src 'none'; script-src 'unsafe-inline'; style-src 'unsafe-inline'; \
                      img-src data: blob:; base-uri 'none'; form-action 'none'";

/// The report as an HTML page.
pub fn page(document: &Document) -> String {
    let charts: Vec<Chart> =
        document.sections.iter().flat_map(|s| &s.pictures).map(echarts::chart).collect();
    let mut page = Page { html: String::with_capacity(2 << 20), pictures: 0 };
    page.head(document);
    page.opening(document);
    page.findings(document);
    page.push("<main>\n");
    for (index, section) in document.sections.iter().enumerate() {
        page.section(section, index, &charts);
    }
    page.push("</main>\n");
    if !document.made.is_empty() {
        page.element("footer class=\"made\"", "footer", &document.made);
    }
    page.push("</div>\n");
    page.json("longtake-data", document);
    page.json("longtake-charts", &charts);
    page.script(echarts::BUNDLE);
    page.script(SCRIPT);
    page.push("</body>\n</html>\n");
    page.html
}

/// The report as a part of another page, such as a notebook: words, static pictures and tables, without scripts and styles.
pub fn fragment(document: &Document) -> String {
    let mut page = Page { html: String::with_capacity(1 << 16), pictures: 0 };
    page.push("<div>\n");
    page.element("h3", "h3", &document.title);
    page.element("p", "p", &document.subtitle);
    for section in &document.sections {
        page.part(section);
    }
    page.push("</div>\n");
    page.html
}

struct Page {
    html: String,
    pictures: usize,
}

impl Page {
    fn push(&mut self, html: &str) {
        self.html.push_str(html);
    }

    /// Text inside an element; nothing if there is none.
    fn element(&mut self, open: &str, close: &str, text: &str) {
        if !text.is_empty() {
            // Writing to a string can't fail.
            let _ = writeln!(self.html, "<{open}>{}</{close}>", markup(text));
        }
    }

    fn json(&mut self, id: &str, value: &impl serde::Serialize) {
        // These are maps with names for keys and numbers that serde_json writes as null when they
        // have to be, so there is nothing to fail on.
        let json = serde_json::to_string(value).unwrap_or_else(|_| "null".to_owned());
        let json = json_in_script(&json);
        let _ =
            writeln!(self.html, "<script type=\"application/json\" id=\"{id}\">{json}</script>");
    }

    /// A script of ours. A test sees to it that none can end its element early.
    fn script(&mut self, script: &str) {
        self.push("<script>\n");
        self.push(script);
        self.push("\n</script>\n");
    }

    fn head(&mut self, document: &Document) {
        let _ = write!(
            self.html,
            "<!doctype html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n\
             <meta http-equiv=\"Content-Security-Policy\" content=\"{POLICY}\">\n\
             <meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n\
             <meta name=\"generator\" content=\"longtake {}\">\n\
             <link rel=\"icon\" href=\"data:,\">\n<title>{}</title>\n<style>\n{}</style>\n\
             </head>\n<body>\n<div class=\"page\">\n",
            env!("CARGO_PKG_VERSION"),
            markup(&document.title),
            style(),
        );
    }

    fn opening(&mut self, document: &Document) {
        self.push("<header>\n<div class=\"head\"><div>\n");
        self.element("h1", "h1", &document.title);
        self.element("p class=\"subtitle\"", "p", &document.subtitle);
        self.push("</div><button class=\"theme\" type=\"button\">Dark</button></div>\n");
        if !document.facts.is_empty() {
            self.push("<dl class=\"facts\">\n");
            for fact in &document.facts {
                let (label, value) = (markup(&fact.label), markup(&fact.value));
                let _ = writeln!(self.html, "<div><dt>{label}</dt><dd>{value}</dd></div>");
            }
            self.push("</dl>\n");
        }
        self.push("</header>\n");
    }

    /// The answers, which are the table of contents as well.
    fn findings(&mut self, document: &Document) {
        if document.sections.is_empty() {
            return;
        }
        self.push("<nav class=\"findings\" aria-labelledby=\"findings\">\n");
        self.push("<h2 id=\"findings\">What was found</h2>\n<ol>\n");
        for (index, section) in document.sections.iter().enumerate() {
            let _ = writeln!(
                self.html,
                "<li><a href=\"#{}\">{}</a><p>{}</p></li>",
                anchor(section, index),
                markup(&section.title),
                markup(&section.answer)
            );
        }
        self.push("</ol>\n</nav>\n");
    }

    fn section(&mut self, section: &Section, index: usize, charts: &[Chart]) {
        let _ = writeln!(self.html, "<section id=\"{}\">", anchor(section, index));
        // Its finding stands in the list at the top.
        self.element("h2", "h2", &section.title);
        for warning in &section.warnings {
            let text = markup(warning);
            let _ = writeln!(self.html, "<p class=\"warning\"><b>Warning</b>{text}</p>");
        }
        for paragraph in &section.paragraphs {
            self.element("p", "p", paragraph);
        }
        for picture in &section.pictures {
            let n = self.pictures;
            self.pictures += 1;
            if let Some(chart) = charts.get(n) {
                self.picture(picture, chart, n);
            }
        }
        for table in &section.tables {
            self.table(table);
        }
        self.push("</section>\n");
    }

    /// A section of a fragment: tables are folded, since there may be many.
    fn part(&mut self, section: &Section) {
        self.element("h4", "h4", &section.title);
        self.element("p", "p", &section.answer);
        for warning in &section.warnings {
            let _ = writeln!(self.html, "<p><b>Warning:</b> {}</p>", markup(warning));
        }
        for paragraph in &section.paragraphs {
            self.element("p", "p", paragraph);
        }
        for picture in &section.pictures {
            let caption = markup(&picture.caption);
            let svg = svg::draw(picture);
            let _ = writeln!(self.html, "<figure>{svg}<figcaption>{caption}</figcaption></figure>");
        }
        for table in &section.tables {
            let caption = markup(&table.caption);
            let _ = writeln!(self.html, "<details><summary>{caption}</summary>");
            self.table(&Table { caption: String::new(), ..table.clone() });
            self.push("</details>\n");
        }
    }

    fn picture(&mut self, picture: &Picture, chart: &Chart, n: usize) {
        let _ = writeln!(
            self.html,
            "<figure class=\"picture\" data-file=\"{}\">\n<h3>{}</h3>",
            picture.file_stem(),
            markup(&picture.title)
        );
        self.element("figcaption", "figcaption", &picture.caption);
        let _ = writeln!(
            self.html,
            "<div class=\"live\"><div class=\"chart\" data-chart=\"{n}\" role=\"img\" \
             aria-label=\"{}\" style=\"height:{}px\"></div>",
            markup(&picture.title),
            chart.height
        );
        self.legend(&picture.kind, &chart.names);
        let _ = writeln!(self.html, "</div>\n<div class=\"static\">{}</div>", svg::inline(picture));
        self.push(
            "<div class=\"foot\"><span class=\"downloads\">\
             <button type=\"button\" data-kind=\"svg\">SVG</button>\
             <button type=\"button\" data-kind=\"png\">PNG</button>\
             <button type=\"button\" data-kind=\"csv\">CSV</button></span>\n\
             <details><summary>Data</summary>\n",
        );
        self.table(&data::table(picture));
        self.push("</details></div>\n</figure>\n");
    }

    /// Which series is which: colour, dash and marker. The buttons show and hide them.
    fn legend(&mut self, kind: &Kind, names: &[String]) {
        if names.len() < 2 {
            return;
        }
        self.push("<ul class=\"legend\">\n");
        for (index, name) in names.iter().enumerate() {
            let _ = writeln!(
                self.html,
                "<li style=\"--s:var(--c{})\"><button type=\"button\" aria-pressed=\"true\" \
                 data-series=\"s{index}\">{}<span>{}</span></button></li>",
                index % palette::SERIES.len(),
                swatch(kind, index),
                markup(name)
            );
        }
        self.push("</ul>\n");
    }

    fn table(&mut self, table: &Table) {
        self.push("<div class=\"table\" tabindex=\"0\"><table>\n");
        self.element("caption", "caption", &table.caption);
        self.push("<thead><tr>");
        for column in &table.columns {
            let unit = match column.unit.as_str() {
                "" => String::new(),
                unit => format!("<span class=\"unit\">{}</span>", markup(unit)),
            };
            let (class, name) = (class(column), markup(&column.name));
            let _ = write!(self.html, "<th scope=\"col\"{class}>{name}{unit}</th>");
        }
        self.push("</tr></thead>\n<tbody>\n");
        let unknown = Cell::default();
        for row in &table.rows {
            self.push("<tr>");
            for (n, column) in table.columns.iter().enumerate() {
                self.cell(row.get(n).unwrap_or(&unknown), column);
            }
            self.push("</tr>\n");
        }
        self.push("</tbody></table></div>\n");
    }

    fn cell(&mut self, cell: &Cell, column: &Column) {
        let note = match &cell.note {
            Some(note) => format!("<span class=\"note\">{}</span>", markup(note)),
            None => String::new(),
        };
        let class = class(column);
        // Where the page is too narrow for columns, each cell has its column's name beside it.
        let name = format!(" data-column=\"{}\"", markup(&column.name));
        let _ = match &cell.value {
            // A name is one word to its readers, though browsers would break it at its hyphens.
            Value::Text(text)
                if class.is_empty() && text.len() <= WORD_MAX && !text.contains(' ') =>
            {
                write!(self.html, "<td class=\"word\"{name}>{}{note}</td>", markup(text))
            }
            Value::Text(text) => write!(self.html, "<td{class}{name}>{}{note}</td>", markup(text)),
            Value::Number { value, decimals } if value.is_finite() => write!(
                self.html,
                "<td{class}{name} data-value=\"{value}\">{}{note}</td>",
                grouped(*value, usize::from(*decimals))
            ),
            Value::Number { .. } | Value::Unknown => {
                let right = if column.alignment == Alignment::Right { "right " } else { "" };
                write!(self.html, "<td class=\"{right}unknown\"{name}>not known{note}</td>")
            }
        };
    }
}

fn class(column: &Column) -> &'static str {
    match column.alignment {
        Alignment::Left => "",
        Alignment::Right => " class=\"right\"",
    }
}

/// A section's place in the page: its own id as far as letters, digits and hyphens go, made unique.
fn anchor(section: &Section, index: usize) -> String {
    let id: String = section
        .id
        .chars()
        .filter(|c| c.is_ascii_alphanumeric() || matches!(c, '-' | '_'))
        .collect();
    format!("s{}-{id}", index + 1)
}

/// The styles, with the dark colours also for readers who prefer them and whose script doesn't run, and
/// with static pictures in the page's own colours.
fn style() -> String {
    let mut style = CSS.to_owned();
    if let Some((_, after)) = CSS.split_once("/* dark */")
        && let Some((dark, _)) = after.split_once("/* end of dark */")
    {
        let preferred = dark.replace("[data-theme=\"dark\"]", ":not([data-theme=\"light\"])");
        let _ = writeln!(style, "@media (prefers-color-scheme: dark) {{{preferred}}}");
    }
    let named = [
        (palette::INK, "ink"),
        (palette::QUIET, "quiet"),
        (palette::GRID, "grid"),
        (palette::MARK, "mark"),
    ];
    let series = palette::SERIES.iter().enumerate().map(|(n, c)| (*c, format!("c{n}")));
    for (colour, name) in named.map(|(c, n)| (c, n.to_owned())).into_iter().chain(series) {
        let hex = palette::hex(colour);
        for property in ["fill", "stroke"] {
            let _ =
                writeln!(style, ".static [{property}=\"{hex}\"] {{ {property}: var(--{name}); }}");
        }
    }
    style
}

/// A piece of a series as it looks in the picture.
fn swatch(kind: &Kind, index: usize) -> String {
    let mark = match palette::marker(index) {
        Marker::Circle => "<circle cx=\"15\" cy=\"6\" r=\"3.5\"/>",
        Marker::Square => "<rect x=\"12\" y=\"3\" width=\"6\" height=\"6\"/>",
        Marker::Triangle => "<path d=\"M15 1.5l4 7.5h-8z\"/>",
        Marker::Diamond => "<path d=\"M15 1.5l4.5 4.5-4.5 4.5-4.5-4.5z\"/>",
    };
    let dashes: Vec<String> = palette::dashes(index).iter().map(u32::to_string).collect();
    let inside = if matches!(kind, Kind::Bars(_)) {
        "<rect x=\"8\" y=\"0\" width=\"14\" height=\"12\"/>".to_owned()
    } else {
        format!(
            "<path d=\"M1 6h28\" stroke=\"currentColor\" stroke-width=\"2\" \
             stroke-dasharray=\"{}\"/>{mark}",
            dashes.join(" ")
        )
    };
    format!("<svg viewBox=\"0 0 30 12\" fill=\"currentColor\" aria-hidden=\"true\">{inside}</svg>")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::picture::{Lines, Series};
    use crate::sample;

    /// What stands between a page's script tags with an id.
    fn embedded<'a>(page: &'a str, id: &str) -> &'a str {
        let start = format!("id=\"{id}\">");
        let after = page.split_once(&start).unwrap().1;
        after.split_once("</script>").unwrap().0
    }

    #[test]
    fn the_page_carries_the_document_as_it_was() {
        let document = sample::document();
        let page = page(&document);
        let back: Document = serde_json::from_str(embedded(&page, "longtake-data")).unwrap();
        assert_eq!(back, document);
    }

    #[test]
    fn nothing_in_the_page_names_another_place_to_fetch_from() {
        let page = page(&sample::document());
        let own = page.replace(echarts::BUNDLE, "");
        for part in own.split("http").skip(1) {
            let allowed = ["://www.w3.org/2000/svg\"", "-equiv=\"Content-Security-Policy\""];
            assert!(allowed.iter().any(|a| part.starts_with(a)), "http{:.60}", part);
        }
        for tag in ["<img", "<iframe", "@import", "url(", " src="] {
            assert!(!own.contains(tag), "{tag}");
        }
        assert!(page.contains("default-src 'none'"));
    }

    #[test]
    fn no_text_of_the_caller_becomes_markup_or_script() {
        let evil = "</script><script>window.evil=1</script><img src=x onerror=evil()>\"'&";
        let mut document = Document::new(evil);
        document.subtitle = evil.into();
        document.made = evil.into();
        document.fact(evil, evil);
        let mut section = Section::new(evil, evil, evil);
        section.paragraphs.push(evil.into());
        section.warnings.push(evil.into());
        section.tables.push(Table {
            caption: evil.into(),
            columns: vec![Column::number(evil, evil)],
            rows: vec![vec![Cell::text(evil).noted(evil)], vec![]],
        });
        let series = vec![Series::new(evil, [(0.0, 1.0)]); 2];
        section.pictures.push(Picture::new(
            evil,
            evil,
            Kind::Lines(Lines { series, ..Lines::default() }),
        ));
        document.sections.push(section);
        let page = page(&document);
        let clean = self::page(&Document::new("t"));
        assert_eq!(page.matches("</script>").count(), clean.matches("</script>").count());
        for tag in ["<img", "<script>window"] {
            assert_eq!(page.matches(tag).count(), clean.matches(tag).count(), "{tag}");
        }
        let back: Document = serde_json::from_str(embedded(&page, "longtake-data")).unwrap();
        assert_eq!(back, document);
    }

    #[test]
    fn our_own_scripts_and_styles_do_not_end_their_elements() {
        for text in [SCRIPT, echarts::BUNDLE, CSS] {
            for end in ["</script", "</style", "<!--"] {
                assert!(!text.to_lowercase().contains(end), "{end}");
            }
        }
    }

    #[test]
    fn sections_with_the_same_or_odd_ids_have_links_of_their_own() {
        let mut document = Document::new("t");
        for id in ["fill", "fill", "a b\"<"] {
            document.sections.push(Section::new(id, "title", "answer"));
        }
        let page = page(&document);
        for anchor in ["s1-fill", "s2-fill", "s3-ab"] {
            assert_eq!(page.matches(&format!("<section id=\"{anchor}\">")).count(), 1);
            assert_eq!(page.matches(&format!("href=\"#{anchor}\"")).count(), 1);
        }
    }

    #[test]
    fn a_fragment_has_all_that_a_page_says_and_nothing_that_runs() {
        let mut document = crate::sample::document();
        document.sections[0].warnings.push("a <script> in a name".to_owned());
        let fragment = fragment(&document);
        for section in &document.sections {
            let words = section.paragraphs.iter().chain([&section.title, &section.answer]);
            let captions = section.tables.iter().map(|table| &table.caption);
            for said in words.chain(captions) {
                assert!(fragment.contains(&markup(said).to_string()), "{said}");
            }
        }
        let pictures = document.sections.iter().map(|section| section.pictures.len());
        assert_eq!(fragment.matches("<svg").count(), pictures.sum::<usize>());
        for runs in ["<script", "<style", "<link", "onclick"] {
            assert!(!fragment.contains(runs), "{runs}");
        }
        assert!(fragment.contains("a &lt;script&gt; in a name"));
    }

    #[test]
    fn what_is_not_known_says_so() {
        let mut document = Document::new("t");
        let mut section = Section::new("a", "b", "c");
        section.tables.push(Table {
            caption: "t".into(),
            columns: vec![Column::text("a"), Column::number("b", "s"), Column::number("c", "s")],
            rows: vec![vec![Cell::text("row"), Cell::maybe(None, 1)]],
        });
        document.sections.push(section);
        let page = page(&document);
        assert_eq!(page.matches("<td class=\"right unknown\" data-column=").count(), 2);
        assert_eq!(page.matches(">not known</td>").count(), 2);
    }
}
