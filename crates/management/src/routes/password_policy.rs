//! Which passwords new ones may be.

use std::sync::Arc;

use auth::{PasswordPolicy, UsersEdit};
use axum::Extension;
use axum::extract::State;
use axum::response::Response;
use serde_json::json;

use super::form_fields::FormFields;
use super::users_change::carry_out;
use crate::answers;
use crate::authentication::User;
use crate::context::Context;

/// As the original has it.
const LENGTH_MAX: usize = 100;

/// GET /settings/passwordPolicy
pub(super) async fn show(State(context): State<Arc<Context>>) -> Response {
    let policy = context.users.registry().policy;
    answers::ok(&json!({
        "minLength": policy.length_min,
        "enforceUppercase": policy.needs_uppercase,
        "enforceLowercase": policy.needs_lowercase,
        "enforceDigits": policy.needs_digit,
        "enforceSpecialChars": policy.needs_special,
    }))
}

/// POST /settings/passwordPolicy: what is not said is as at first, but for the length.
pub(super) async fn change(
    State(context): State<Arc<Context>>,
    Extension(user): Extension<User>,
    FormFields(fields): FormFields,
) -> Response {
    let mut policy = PasswordPolicy::default();
    for (name, value) in fields {
        let flag = match name.as_str() {
            "minLength" => {
                match value.parse() {
                    Ok(length) if length <= LENGTH_MAX => policy.length_min = length,
                    _ => return answers::refused("minLength", "The value must be 0 to 100"),
                }
                continue;
            }
            "enforceUppercase" => &mut policy.needs_uppercase,
            "enforceLowercase" => &mut policy.needs_lowercase,
            "enforceDigits" => &mut policy.needs_digit,
            "enforceSpecialChars" => &mut policy.needs_special,
            _ => return answers::refused(&name, "Unsupported key"),
        };
        match value.parse() {
            Ok(said) => *flag = said,
            Err(_) => return answers::refused(&name, "The value must be true or false"),
        }
    }
    carry_out(&context, &user, UsersEdit::SetPolicy(policy)).await
}
