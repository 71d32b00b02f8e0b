//! "Did you mean": the known name nearest to one that is not known.

/// A sentence that suggests the nearest of some names, if one is near enough.
pub(crate) fn did_you_mean<'a>(unknown: &str, known: impl IntoIterator<Item = &'a str>, sigil: &str) -> Option<String> {
    nearest(unknown, known).map(|name| format!("did you mean `{sigil}{name}`?"))
}

/// The name with the fewest edits, within a third of its length (at least one); the first of equals.
pub(crate) fn nearest<'a>(unknown: &str, known: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
    if unknown.len() > 64 {
        return None;
    }
    let limit = (unknown.chars().count() / 3).max(1);
    known
        .into_iter()
        .filter(|name| name.len() <= 64)
        .map(|name| (edits(unknown, name), name))
        .filter(|(distance, name)| *distance <= limit && *distance < name.len().max(unknown.len()))
        .min_by_key(|(distance, _)| *distance)
        .map(|(_, name)| name)
}

/// Edit distance in which a swap of neighbours is one edit.
fn edits(a: &str, b: &str) -> usize {
    let (a, b): (Vec<char>, Vec<char>) = (a.chars().collect(), b.chars().collect());
    let mut before: Vec<usize> = vec![];
    let mut above: Vec<usize> = (0..=b.len()).collect();
    for i in 0..a.len() {
        let mut row = vec![i + 1];
        for j in 0..b.len() {
            let replaced = above[j] + usize::from(a[i] != b[j]);
            let mut best = replaced.min(above[j + 1] + 1).min(row[j] + 1);
            if i > 0 && j > 0 && a[i] == b[j - 1] && a[i - 1] == b[j] {
                best = best.min(before[j - 1] + 1);
            }
            row.push(best);
        }
        before = std::mem::replace(&mut above, row);
    }
    above[b.len()]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nearest_finds_slips_and_not_strangers() {
        let known = ["softmax", "sigmoid", "sum"];
        assert_eq!(nearest("sofmax", known), Some("softmax"));
        assert_eq!(nearest("sotfmax", known), Some("softmax"));
        assert_eq!(nearest("smu", known), Some("sum"));
        assert_eq!(nearest("convolution", known), None);
        assert_eq!(nearest("x", ["y"]), None);
    }
}
