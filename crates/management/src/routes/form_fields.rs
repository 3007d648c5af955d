//! The fields of a form that a request brings.

use std::sync::Arc;

use axum::Form;
use axum::body::{Body, Bytes};
use axum::extract::{FromRequest, Request};
use axum::response::{IntoResponse, Response};

use super::named_bucket::Fields;
use crate::answers;
use crate::context::Context;

/// What a form says: nothing where there is no body. A body that is something else is refused: it
/// is not taken for a form that says nothing, whose success would be taken for that of what it
/// says.
pub(super) struct FormFields(pub(super) Fields);

impl FromRequest<Arc<Context>> for FormFields {
    type Rejection = Response;

    async fn from_request(request: Request, context: &Arc<Context>) -> Result<Self, Response> {
        let (parts, body) = request.into_parts();
        let body = Bytes::from_request(Request::from_parts(parts.clone(), body), context).await;
        let body = body.map_err(IntoResponse::into_response)?;
        if body.is_empty() {
            return Ok(Self(Fields::default()));
        }
        let request = Request::from_parts(parts, Body::from(body));
        match Form::from_request(request, context).await {
            Ok(Form(fields)) => Ok(Self(fields)),
            Err(_) => Err(answers::refused("_", "The body is a form")),
        }
    }
}
