//! Which rows of the board a page shows, and in which order: the query of `/`.

use std::sync::Arc;

use crate::board::{BoardRow, Filter, FilterError, Snapshot};
use crate::web::pages::texts::Texts;

/// Rows a page.
const ROWS: usize = 200;
/// Hours that are shown, and the most of them.
const HOURS: usize = 24;
const MOST_HOURS: usize = 168;

/// The order of the rows.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) enum Sort {
    #[default]
    Name,
    Next,
    State,
}

impl Sort {
    pub(super) const ALL: [Self; 3] = [Self::Name, Self::Next, Self::State];

    pub(super) const fn as_str(self) -> &'static str {
        match self {
            Self::Name => "name",
            Self::Next => "next",
            Self::State => "state",
        }
    }

    pub(super) const fn label(self, t: &Texts) -> &'static str {
        let [name, next, state] = t.home.sorts;
        match self {
            Self::Name => name,
            Self::Next => next,
            Self::State => state,
        }
    }
}

/// What is asked for.
#[derive(Clone, Debug, Default)]
pub(super) struct Listing {
    pub(super) query: String,
    /// Why the query could not be read; every row is shown then.
    pub(super) error: Option<FilterError>,
    pub(super) sort: Sort,
    pub(super) hours: usize,
    filter: Filter,
    page: usize,
}

/// A number that is a filter.
pub(super) struct Count {
    pub(super) label: String,
    pub(super) number: usize,
    pub(super) link: String,
    pub(super) bad: bool,
    pub(super) current: bool,
}

/// The rows of one page.
pub(super) struct RowsFound<'a> {
    pub(super) rows: Vec<&'a Arc<BoardRow>>,
    pub(super) page: usize,
    pub(super) pages: usize,
}

impl Listing {
    /// Of an address.
    pub(super) fn of(query: &str) -> Self {
        let mut listing = Self { hours: HOURS, page: 1, ..Self::default() };
        for (key, value) in url::form_urlencoded::parse(query.as_bytes()) {
            match &*key {
                "q" => value.trim().clone_into(&mut listing.query),
                "sort" => {
                    listing.sort = Sort::ALL.into_iter().find(|sort| sort.as_str() == value).unwrap_or_default();
                }
                "page" => listing.page = value.parse().unwrap_or(1),
                "hours" => listing.hours = value.parse().unwrap_or(HOURS).clamp(HOURS, MOST_HOURS),
                _ => {}
            }
        }
        match Filter::parse(&listing.query) {
            Ok(filter) => listing.filter = filter,
            Err(error) => listing.error = Some(error),
        }
        listing
    }

    /// The rows of its page.
    pub(super) fn rows<'a>(&self, shown: &'a Snapshot) -> RowsFound<'a> {
        let mut rows: Vec<&Arc<BoardRow>> = shown.rows.iter().filter(|row| self.filter.wants(row)).collect();
        match self.sort {
            Sort::Name => {}
            Sort::Next => rows.sort_by_key(|row| (row.view.next_tick.is_none(), row.view.next_tick)),
            Sort::State => rows.sort_by_key(|row| rank(row)),
        }
        let pages = rows.len().div_ceil(ROWS).max(1);
        let page = self.page.clamp(1, pages);
        let rows = rows.into_iter().skip((page - 1) * ROWS).take(ROWS).collect();
        RowsFound { rows, page, pages }
    }

    /// The same view on another page.
    pub(super) fn link(&self, page: usize) -> String {
        self.address(&self.query, page)
    }

    fn address(&self, query: &str, page: usize) -> String {
        let mut pairs = url::form_urlencoded::Serializer::new(String::new());
        if !query.is_empty() {
            pairs.append_pair("q", query);
        }
        if self.sort != Sort::Name {
            pairs.append_pair("sort", self.sort.as_str());
        }
        if self.hours != HOURS {
            pairs.append_pair("hours", &self.hours.to_string());
        }
        if page > 1 {
            pairs.append_pair("page", &page.to_string());
        }
        let query = pairs.finish();
        if query.is_empty() { String::new() } else { format!("?{query}") }
    }

    /// How many there are of what is worth a number: each is a filter.
    pub(super) fn counts(&self, shown: &Snapshot, t: &Texts) -> Vec<Count> {
        let states = ["failing", "running", "retrying", "missed", "paused"];
        let count = |query: &str| {
            let filter = Filter::parse(query).unwrap_or_default();
            shown.rows.iter().filter(|row| filter.wants(row)).count()
        };
        let all = Count {
            label: t.home.all.to_owned(),
            number: shown.rows.len(),
            link: self.address("", 1),
            bad: false,
            current: self.query.is_empty(),
        };
        let of_state = |state: &'static str| {
            let query = format!("state:{state}");
            Count {
                label: (t.words.job_state)(state).to_owned(),
                number: count(&query),
                link: self.address(&query, 1),
                bad: matches!(state, "failing" | "missed"),
                current: self.query == query,
            }
        };
        let some = states.into_iter().map(of_state).filter(|count| count.number > 0 || count.current);
        std::iter::once(all).chain(some).collect()
    }
}

/// What needs somebody first.
fn rank(row: &BoardRow) -> (bool, Option<crate::board::CellState>) {
    (row.view.latest.failing.is_none(), row.cells.last().map(|cell| cell.state))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_address_says_which_rows_and_a_link_says_the_same() {
        let listing = Listing::of("q=owner%3Aerp+billing&sort=state&page=3&hours=48&lang=zh");
        assert_eq!(
            (&*listing.query, listing.sort, listing.hours, listing.page),
            ("owner:erp billing", Sort::State, 48, 3)
        );
        assert_eq!(listing.link(1), "?q=owner%3Aerp+billing&sort=state&hours=48");
        assert_eq!(Listing::of("").link(2), "?page=2");
        assert_eq!(Listing::of("hours=9999&page=x&sort=y").hours, 168);
    }

    #[test]
    fn a_query_that_cannot_be_read_is_told_and_hides_nothing() {
        let listing = Listing::of("q=colour%3Ared");
        assert!(matches!(&listing.error, Some(FilterError::Field(field)) if field == "colour"), "{:?}", listing.error);
        assert!(listing.filter.is_empty());
    }
}
