//! The name that was probably meant by one that isn't known.

/// The likeliest of the known names, if one is likely: the only one that contains the word, or else the most alike
/// (Jaro and Winkler's likeness of 0.8 or more, where 1 is the same).
pub fn nearest<'a>(word: &str, known: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
    let known: Vec<&str> = known.into_iter().collect();
    let mut holding = known.iter().filter(|name| !word.is_empty() && name.contains(word));
    if let (Some(&only), None) = (holding.next(), holding.next()) {
        return Some(only);
    }
    known
        .into_iter()
        .map(|name| (strsim::jaro_winkler(word, name), name))
        .filter(|(likeness, _)| *likeness >= 0.8)
        .max_by(|a, b| a.0.total_cmp(&b.0))
        .map(|(_, name)| name)
}

#[cfg(test)]
mod tests {
    use super::*;

    const KNOWN: [&str; 4] = ["channels", "channel_mb_s", "planes", "erase_us"];

    #[test]
    fn a_slip_of_the_pen_finds_what_was_meant() {
        for (word, meant) in
            [("chanels", "channels"), ("Planes", "planes"), ("erase_ms", "erase_us")]
        {
            assert_eq!(nearest(word, KNOWN), Some(meant), "{word}");
        }
    }

    #[test]
    fn a_part_that_only_one_name_has_finds_it() {
        assert_eq!(nearest("mb_s", KNOWN), Some("channel_mb_s"));
    }

    #[test]
    fn what_is_like_nothing_finds_nothing() {
        assert_eq!(nearest("temperature", KNOWN), None);
        assert_eq!(nearest("", KNOWN), None);
    }
}
