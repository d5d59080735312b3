//! The part of a url that is the same for every server: cronward's own parameter, and the refusal of unknown ones.

use url::Url;

use super::Access;

/// Takes `migrate` out of the url, and refuses parameters that nobody knows: the driver would ignore them in silence.
pub(in crate::store::sql) fn take_access(url: &mut Url, known: &[&str]) -> Result<Access, String> {
    let pairs: Vec<(String, String)> = url.query_pairs().into_owned().collect();
    if let Some((unknown, _)) = pairs.iter().find(|(name, _)| name != "migrate" && !known.contains(&name.as_str())) {
        return Err(format!("parameter {unknown:?} is not known; known are {}, migrate", known.join(", ")));
    }
    let access = match pairs.iter().find(|(name, _)| name == "migrate").map(|(_, value)| value.as_str()) {
        None | Some("on") => Access::Migrate,
        Some("off") => Access::Use,
        Some(_) => return Err("migrate is \"on\" or \"off\"".to_owned()),
    };
    url.query_pairs_mut().clear().extend_pairs(pairs.iter().filter(|(name, _)| name != "migrate"));
    Ok(access)
}
