//! The parts of an address: one that cannot be read (bytes that are no text, a number that is none) names nothing, and is answered as any
//! other name of nothing is.

use axum::extract::{FromRequestParts, Path};
use axum::http::request::Parts;
use serde::de::DeserializeOwned;

use crate::web::problem::Problem;

/// What stands in the places of a route.
pub(super) struct AddressParts<T>(pub(super) T);

impl<T: DeserializeOwned + Send, S: Send + Sync> FromRequestParts<S> for AddressParts<T> {
    type Rejection = Problem;

    async fn from_request_parts(parts: &mut Parts, state: &S) -> Result<Self, Problem> {
        let read = Path::<T>::from_request_parts(parts, state).await;
        read.map(|Path(parts)| Self(parts)).map_err(|_| Problem::not_found())
    }
}
