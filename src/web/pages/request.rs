//! One request for a page: who asks, in which language, and how the answer is written.

use std::convert::Infallible;
use std::sync::Arc;

use askama::Template;
use axum::body::Body;
use axum::extract::FromRequestParts;
use axum::http::header::{CONTENT_TYPE, SET_COOKIE};
use axum::http::request::Parts;
use axum::http::{HeaderMap, HeaderValue, StatusCode, Uri};
use axum::response::{IntoResponse, Response};

use crate::admin::actions::ActionTexts;
use crate::board::Snapshot;
use crate::config::Role;
use crate::web::detail::ProblemDetail;
use crate::web::pages::frame::{self, Frame, Setting, Who};
use crate::web::pages::moment::Teller;
use crate::web::pages::plain::ProblemPage;
use crate::web::pages::reader::Reader;
use crate::web::pieces::Pieces;
use crate::web::problem::Problem;
use crate::web::site::Site;
use crate::web::tokens::{Bearer, Way};

/// One request.
#[derive(Debug)]
pub(in crate::web) struct PageRequest {
    pub(in crate::web) site: Arc<Site>,
    pub(super) reader: Reader,
    pub(super) setting: Setting,
    pub(super) query: Vec<(String, String)>,
}

impl FromRequestParts<Arc<Site>> for PageRequest {
    type Rejection = Infallible;

    async fn from_request_parts(parts: &mut Parts, site: &Arc<Site>) -> Result<Self, Infallible> {
        Ok(Self::of(site, &parts.uri, &parts.headers, parts.extensions.get::<Bearer>()))
    }
}

impl PageRequest {
    /// Of a request below the base.
    pub(in crate::web) fn of(site: &Arc<Site>, uri: &Uri, headers: &HeaderMap, bearer: Option<&Bearer>) -> Self {
        let reader = Reader::of(uri, headers);
        let query = url::form_urlencoded::parse(uri.query().unwrap_or_default().as_bytes()).into_owned().collect();
        let who = bearer.map(|bearer| Who {
            name: crate::text::message(&bearer.name, 40),
            role: frame::role(reader.t, bearer.role),
            named: bearer.way != Way::Anybody,
            acts: bearer.role >= Role::Operator && !site.http.read_only && site.sources.operations.is_some(),
            form_token: bearer.form_token().map(str::to_owned),
        });
        let setting = Setting {
            base: if site.http.base_path == "/" { String::new() } else { site.http.base_path.clone() },
            namespace: site.sources.namespace.clone(),
            has_login: site.http.tokens_file.is_some(),
            draining: site.sources.health.borrow().draining,
            who,
            clock: site.sources.clock.now().wall,
        };
        Self { site: Arc::clone(site), reader, setting, query }
    }

    /// A value of the query.
    pub(super) fn asked(&self, name: &str) -> Option<&str> {
        self.query.iter().find(|(key, _)| key == name).map(|(_, value)| value.as_str())
    }

    /// Whether who asks may act.
    pub(super) fn acts(&self) -> bool {
        self.setting.who.as_ref().is_some_and(|who| who.acts)
    }

    /// How actions are told.
    pub(in crate::web) fn actions(&self) -> &'static ActionTexts {
        &self.reader.t.actions
    }

    /// What surrounds a page with what the store said.
    pub(super) fn frame(&self, shown: &Snapshot, current: &'static str, title: impl Into<String>) -> Frame {
        Frame::of(&self.setting, &self.reader, Some(shown), current, title)
    }

    /// The same for a page that needs nothing of the store.
    pub(super) fn bare(&self, current: &'static str, title: impl Into<String>) -> Frame {
        Frame::of(&self.setting, &self.reader, None, current, title)
    }

    /// How times are told.
    pub(super) fn tell(&self, shown: &Snapshot) -> Teller {
        frame::teller(&self.setting, &self.reader, Some(shown))
    }

    /// The page that says what went wrong.
    pub(in crate::web) fn problem(&self, status: StatusCode, detail: &ProblemDetail) -> Option<String> {
        let (said, t) = (self.reader.t.said, &self.reader.t.other_pages);
        let page = ProblemPage {
            frame: self.bare("", (t.problem)(status.as_u16())),
            heading: (t.problem)(status.as_u16()),
            status: status.as_u16(),
            advice: if detail.needs_somebody() { t.problem_fix } else { (t.problem_do)(status.as_u16()) },
            detail: ProblemPage::detail(said(detail), detail.quoted()),
            login: status == StatusCode::UNAUTHORIZED && self.setting.has_login,
        };
        page.render().ok()
    }

    /// The page as an answer.
    pub(super) fn page(&self, page: &impl Template) -> Result<Response, Problem> {
        let unwritten = |_| Problem::internal(ProblemDetail::PageUnwritten);
        let mut html = Pieces::default();
        page.render_into(&mut html).map_err(unwritten)?;
        let mut response = ([(CONTENT_TYPE, "text/html; charset=utf-8")], Body::from(html)).into_response();
        for cookie in self.reader.cookies(&self.setting.base) {
            if let Ok(value) = HeaderValue::try_from(cookie) {
                response.headers_mut().append(SET_COOKIE, value);
            }
        }
        Ok(response)
    }
}
