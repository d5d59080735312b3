//! The version of the tables, which is one: what came before it was never released.

use super::fault::Fault;
use crate::store::ErrorKind;

/// The version that each `schema.sql` makes.
pub(super) const VERSION: i64 = 5;

/// Whether the tables have to be made; refuses tables of any other version. What is to be done with older ones is the store's to say.
pub(super) fn are_missing(version: i64, way_out: &str) -> Result<bool, Fault> {
    let refuse = |why: String| Err(Fault::known(ErrorKind::Unsupported, why));
    match version {
        0 => Ok(true),
        VERSION => Ok(false),
        1..VERSION => refuse(format!(
            "its tables have version {version}, which was never released, and this cronward makes version {VERSION}: {way_out}"
        )),
        _ => refuse(format!(
            "its tables have version {version}, and this cronward knows version {VERSION}: run the newer cronward"
        )),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tables_are_made_where_there_are_none_and_left_alone_where_they_are_of_another_version() {
        assert!(are_missing(0, "move it away").unwrap());
        assert!(!are_missing(VERSION, "move it away").unwrap());
        for (version, part) in [
            (1, "version 1, which was never released"),
            (VERSION - 1, "makes version 5: move it away"),
            (VERSION + 1, "run the newer cronward"),
            (-1, "run the newer cronward"),
        ] {
            let fault = are_missing(version, "move it away").unwrap_err().to_string();
            assert!(fault.contains(part), "{fault}");
        }
    }
}
