//! The pages that are made of the board alone: whoever looks asks no store.

use axum::response::Response;

use crate::slot::SlotKey;
use crate::web::activity::Happened;
use crate::web::pages::cluster::{ActivityLine, ActivityPage, NodesPage};
use crate::web::pages::home::Home;
use crate::web::pages::listing::Listing;
use crate::web::pages::plain::{HelpPage, LoginPage};
use crate::web::pages::request::PageRequest;
use crate::web::pages::texts::Words;
use crate::web::problem::Problem;

/// `/`.
pub(in crate::web) async fn home(ask: PageRequest) -> Result<Response, Problem> {
    let query = ask.query.iter();
    let query = url::form_urlencoded::Serializer::new(String::new()).extend_pairs(query).finish();
    let listing = Listing::of(&query);
    let shown = ask.site.sources.board.read(listing.hours).await;
    let tell = ask.tell(&shown);
    let frame = ask.frame(&shown, "hours", ask.reader.t.home.title);
    ask.page(&Home::of(frame, &shown, &listing, ask.acts(), &tell))
}

/// `/nodes`.
pub(in crate::web) async fn nodes(ask: PageRequest) -> Result<Response, Problem> {
    let shown = ask.site.sources.board.read(0).await;
    let frame = ask.frame(&shown, "nodes", ask.reader.t.frame.nodes);
    ask.page(&NodesPage::of(frame, &shown, &ask.tell(&shown)))
}

/// `/activity`.
pub(in crate::web) async fn activity(ask: PageRequest) -> Result<Response, Problem> {
    let shown = ask.site.sources.board.look(0);
    let tell = ask.tell(&shown);
    let link = |(job, key): (String, SlotKey)| (format!("/jobs/{job}/{key}"), format!("{job}@{key}"));
    let line = |happened: Happened| ActivityLine {
        at: tell.moment(happened.at),
        what: what(&happened, &tell.t.words),
        slot: happened.slot.map(link),
    };
    let lines = ask.site.sources.activity.newest().into_iter().map(line).collect();
    let frame = ask.frame(&shown, "activity", ask.reader.t.frame.activity);
    ask.page(&ActivityPage::of(frame, ask.site.sources.node.as_str(), lines, &tell))
}

/// The event, what is said with it, and how a run or a slot ended.
pub(super) fn what(happened: &Happened, words: &Words) -> String {
    let result = happened.result.map(|(word, code)| {
        let code = code.map(|code| format!(" ({code})")).unwrap_or_default();
        format!("{}{code}", (words.outcome)(word))
    });
    let parts = [(words.event)(happened.word), happened.detail.clone(), result.unwrap_or_default()];
    parts.into_iter().filter(|part| !part.is_empty()).collect::<Vec<_>>().join(" ")
}

/// `/help`.
pub(in crate::web) async fn help(ask: PageRequest) -> Result<Response, Problem> {
    let frame = ask.bare("help", ask.reader.t.frame.help);
    ask.page(&HelpPage { frame })
}

/// `/login`.
pub(in crate::web) async fn login(ask: PageRequest) -> Result<Response, Problem> {
    let frame = ask.bare("login", ask.reader.t.other_pages.login_title);
    let next = ask.asked("next").map(str::to_owned);
    ask.page(&LoginPage { frame, wrong: ask.asked("wrong").is_some(), next })
}
