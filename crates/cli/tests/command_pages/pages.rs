//! The pages below docs/commands, made from the program's help: one for each command, with those below it.

/// What stands at the top of each page.
const NOTE: &str = "Generated from `longtake --help` by `cargo xtask commands`. To change this page, change the help.";

/// The commands that a command's help lists, `help` left out.
fn below(help: &str) -> Vec<String> {
    let list = help.lines().skip_while(|line| *line != "Commands:").skip(1);
    let names = list.take_while(|line| !line.is_empty()).filter_map(|line| {
        let name = line.strip_prefix("  ").filter(|rest| !rest.starts_with(' '))?;
        name.split_whitespace().next().filter(|name| *name != "help")
    });
    names.map(str::to_owned).collect()
}

/// A command's section, and those of the commands below it.
fn sections(words: &[String], help: &mut impl FnMut(&[String]) -> String, page: &mut String) {
    let text = help(words);
    let level = if words.len() == 1 { "#" } else { "##" };
    *page += &format!("{level} longtake {}\n\n", words.join(" "));
    if words.len() == 1 {
        *page += &format!("{NOTE}\n\n");
    }
    let lines: Vec<&str> = text.lines().map(str::trim_end).collect();
    *page += &format!("```text\n{}\n```\n", lines.join("\n").trim_end());
    for name in below(&text) {
        let words: Vec<String> = words.iter().cloned().chain([name]).collect();
        page.push('\n');
        sections(&words, help, page);
    }
}

/// Each page's name and text. `help` returns what the program prints for a command's `--help`, 100 columns wide.
pub fn pages(mut help: impl FnMut(&[String]) -> String) -> Vec<(String, String)> {
    let commands = below(&help(&[]));
    let page = |name: String| {
        let mut page = String::new();
        sections(std::slice::from_ref(&name), &mut help, &mut page);
        (format!("{name}.md"), page)
    };
    commands.into_iter().map(page).collect()
}
