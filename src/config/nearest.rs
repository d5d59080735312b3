//! "Did you mean": the known word that is nearest to one that is not known.

/// Longer texts are no slip of the pen, and comparing them costs time.
const LONGEST: usize = 64;

/// The nearest of `known` to `word`, when it is near enough to be meant.
pub(super) fn nearest<'k>(word: &str, known: impl IntoIterator<Item = &'k str>) -> Option<&'k str> {
    if word.len() > LONGEST {
        return None;
    }
    let lower = word.to_ascii_lowercase().replace('-', "_");
    known
        .into_iter()
        .map(|name| (strsim::damerau_levenshtein(&lower, &name.to_ascii_lowercase().replace('-', "_")), name))
        .min_by_key(|(distance, _)| *distance)
        .filter(|(distance, name)| *distance <= (word.len().max(name.len()) / 3).max(1))
        .map(|(_, name)| name)
}

/// The nearest IANA time zone: also `Berlin` for `Europe/Berlin`.
pub(crate) fn nearest_zone(word: &str) -> Option<&'static str> {
    let zones = || chrono_tz::TZ_VARIANTS.iter().map(|zone| zone.name());
    let spelled = word.trim().replace(' ', "_");
    let city = |name: &&'static str| name.rsplit('/').next().is_some_and(|city| city.eq_ignore_ascii_case(&spelled));
    let same = |name: &&'static str| name.eq_ignore_ascii_case(&spelled);
    zones()
        .find(same)
        .or_else(|| zones().find(|name| name.contains('/') && city(name)))
        .or_else(|| nearest(&spelled, zones()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_slip_finds_its_word_and_another_word_finds_none() {
        let known = ["lease_ttl", "done_ttl", "timeout"];
        assert_eq!(nearest("leasettl", known), Some("lease_ttl"));
        assert_eq!(nearest("lease-ttl", known), Some("lease_ttl"));
        assert_eq!(nearest("Timeuot", known), Some("timeout"));
        assert_eq!(nearest("colour", known), None);
        assert_eq!(nearest(&"x".repeat(1_000), known), None);
    }

    #[test]
    fn a_city_finds_its_zone() {
        assert_eq!(nearest_zone("Berlin"), Some("Europe/Berlin"));
        assert_eq!(nearest_zone("new york"), Some("America/New_York"));
        assert_eq!(nearest_zone("Europe/Berln"), Some("Europe/Berlin"));
        assert_eq!(nearest_zone("utc"), Some("UTC"));
        assert_eq!(nearest_zone("europe/berlin"), Some("Europe/Berlin"));
        assert_eq!(nearest_zone("Atlantis/Somewhere/Else"), None);
    }
}
