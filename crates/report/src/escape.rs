//! Foreign text inside markup: nothing that a caller names can become a tag, an attribute or a script.

use std::fmt::Write as _;

/// Text for element content and quoted attributes of HTML and SVG. Characters that XML doesn't allow
/// (most controls) become U+FFFD.
pub fn markup(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for c in text.chars() {
        match c {
            '<' => out.push_str("&lt;"),
            '>' => out.push_str("&gt;"),
            '&' => out.push_str("&amp;"),
            '"' => out.push_str("&quot;"),
            '\'' => out.push_str("&#39;"),
            '\t' | '\n' => out.push(c),
            c if c.is_control() => out.push('\u{FFFD}'),
            c => out.push(c),
        }
    }
    out
}

/// JSON for inside a script element: no `<`, so that neither `</script>` nor `<!--` can occur, and no
/// line separators that older scripts read as line ends. It stays the same JSON.
pub fn json_in_script(json: &str) -> String {
    let mut out = String::with_capacity(json.len());
    for c in json.chars() {
        match c {
            '<' | '>' | '&' | '\u{2028}' | '\u{2029}' => {
                // Writing to a string can't fail.
                let _ = write!(out, "\\u{:04x}", c as u32);
            }
            c => out.push(c),
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_that_opens_markup_is_left() {
        assert_eq!(markup("<a href='x'>\"&\u{0}"), "&lt;a href=&#39;x&#39;&gt;&quot;&amp;\u{FFFD}");
    }

    #[test]
    fn json_in_a_script_stays_the_same_json() {
        let text = "</script><!-- & \u{2028} \\ \" ü";
        let json = serde_json::to_string(text).unwrap();
        let escaped = json_in_script(&json);
        assert!(!escaped.contains(['<', '>', '&', '\u{2028}']), "{escaped}");
        assert_eq!(serde_json::from_str::<String>(&escaped).unwrap(), text);
    }
}
