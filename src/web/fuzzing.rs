//! What strangers send to the port, and the file that says who may ask, as the fuzz targets hand it over: any bytes.

use url::Url;

use crate::web::actions::ActionBody;
use crate::web::form;
use crate::web::login::own_path;
use crate::web::session::{LoginCookie, LoginKey};
use crate::web::tokens::Tokens;

/// The longest of what is told of a body that is wrong.
const TOLD: usize = 400;

/// A file of tokens; and the same bytes as a cookie, a form, a body and the page to go on to. True when they are a file of tokens.
///
/// # Panics
/// Something of this is not as claimed.
pub fn http_words(bytes: &[u8]) -> bool {
    let text = String::from_utf8_lossy(bytes);
    is_no_login(&text);
    goes_nowhere_else(&text);
    let fields = form::fields(bytes, ["token", "reason"]);
    // Each byte that is no UTF-8 becomes three.
    assert!(fields.iter().all(|field| field.len() <= bytes.len() * 3), "a field is larger than its form");
    if let Err(problem) = ActionBody::parse(bytes) {
        let told = problem.detail().to_string();
        assert!(!told.chars().any(crate::text::is_harmful) && told.len() <= TOLD, "{told:?}");
    }
    tokens(&text)
}

fn tokens(text: &str) -> bool {
    match Tokens::parse(text) {
        Ok(tokens) => {
            assert!(tokens.count() <= text.lines().count());
            assert_eq!(format!("{tokens:?}"), format!("Tokens({})", tokens.count()), "nothing of a token is shown");
            true
        }
        Err((line, what)) => {
            assert!(
                line >= 1 && line <= text.lines().count() && !what.chars().any(crate::text::is_harmful),
                "{what:?}"
            );
            false
        }
    }
}

/// Nobody can sign what nobody has the key of.
fn is_no_login(text: &str) {
    let Some(cookie) = LoginCookie::parse(text) else { return };
    assert!(!LoginKey::of([7; 32]).accepts(&cookie, chrono::DateTime::UNIX_EPOCH), "{text:?} is signed");
}

/// What is gone on to is on this port, as a browser reads it.
fn goes_nowhere_else(text: &str) {
    for base in ["/", "/ops/cron"] {
        let Some(path) = own_path(base, text) else { continue };
        let here = Url::parse("http://own.example:9747/login").and_then(|here| here.join(&path));
        let host = here.as_ref().map(|url| (url.scheme(), url.host_str(), url.port()));
        assert_eq!(host, Ok(("http", Some("own.example"), Some(9747))), "{path:?}");
    }
}
