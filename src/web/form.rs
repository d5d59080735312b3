//! Fields of a form, as a browser sends them. A field that is missing is empty, one that is there twice counts once: the first.

/// The values of these fields.
pub(super) fn fields<const N: usize>(body: &[u8], names: [&str; N]) -> [String; N] {
    let mut values: [Option<String>; N] = std::array::from_fn(|_| None);
    for (name, value) in url::form_urlencoded::parse(body) {
        let slot = names.iter().position(|known| *known == name).and_then(|at| values.get_mut(at));
        if let Some(slot @ None) = slot {
            *slot = Some(value.into_owned());
        }
    }
    values.map(Option::unwrap_or_default)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_field_is_found_by_its_name_once() {
        let body = b"reason=disk+is+free%21&x=1&reason=other&token=%ff";
        assert_eq!(fields(body, ["token", "reason", "until"]), ["\u{fffd}", "disk is free!", ""]);
        assert_eq!(fields(b"", ["a"]), [""]);
    }
}
