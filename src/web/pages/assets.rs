//! The stylesheet, the script and the icon: embedded, each under an address that has the hash of its content, so that a browser may keep
//! them for ever. Nothing else is served as a file.

use std::fmt::Write;
use std::sync::LazyLock;

use axum::http::header::{CACHE_CONTROL, CONTENT_TYPE};
use axum::response::IntoResponse;
use sha2::{Digest as _, Sha256};

use crate::web::parts::AddressParts;
use crate::web::problem::Problem;

/// One of them.
struct Asset {
    /// `cronward-0123456789ab.css`.
    name: String,
    kind: &'static str,
    text: &'static str,
}

/// Where a page finds them, below `/assets/`.
#[derive(Clone, Copy, Debug)]
pub(super) struct Names {
    pub(super) style: &'static str,
    pub(super) script: &'static str,
    pub(super) icon: &'static str,
}

static ASSETS: LazyLock<[Asset; 3]> = LazyLock::new(|| {
    [
        Asset::of("css", "text/css; charset=utf-8", include_str!("../assets/cronward.css")),
        Asset::of("js", "text/javascript; charset=utf-8", include_str!("../assets/cronward.js")),
        Asset::of("svg", "image/svg+xml", include_str!("../assets/cronward.svg")),
    ]
});

impl Asset {
    fn of(ending: &str, kind: &'static str, text: &'static str) -> Self {
        let mut name = "cronward-".to_owned();
        for byte in Sha256::digest(text).iter().take(6) {
            // Writing to a string cannot fail.
            let _ = write!(name, "{byte:02x}");
        }
        Self { name: format!("{name}.{ending}"), kind, text }
    }
}

/// The addresses.
pub(super) fn names() -> Names {
    let [style, script, icon] = &*ASSETS;
    Names { style: &style.name, script: &script.name, icon: &icon.name }
}

/// `/assets/{name}`.
pub(in crate::web) async fn serve(AddressParts(name): AddressParts<String>) -> Result<impl IntoResponse, Problem> {
    let asset = ASSETS.iter().find(|asset| asset.name == name).ok_or_else(Problem::not_found)?;
    Ok(([(CONTENT_TYPE, asset.kind), (CACHE_CONTROL, "public, max-age=31536000, immutable")], asset.text))
}

/// `/favicon.ico`, which browsers ask for on answers that are no page.
pub(in crate::web) async fn icon() -> impl IntoResponse {
    let [_, _, icon] = &*ASSETS;
    ([(CONTENT_TYPE, icon.kind), (CACHE_CONTROL, "public, max-age=86400")], icon.text)
}

/// For tests: an asset's name.
#[cfg(test)]
pub(in crate::web) fn stylesheet() -> &'static str {
    names().style
}
