//! What a row of the table of settings is, and what follows from the rows.

use std::fmt::{Debug, Display};

use anyhow::bail;
use clap::Arg;

/// What a setting may be, beyond what its type says.
pub(crate) enum Allowed<T> {
    /// So much or more.
    AtLeast(T),
    /// From the first to the second.
    Between(T, T),
    /// What a function says.
    If {
        /// What it says yes to, for people.
        range: &'static str,
        /// What is said behind the flag when it says no; `{value}` and `{range}` stand for both.
        complaint: &'static str,
        /// Whether it is allowed.
        holds: fn(&T) -> bool,
    },
}

impl<T: PartialOrd + Display> Allowed<T> {
    /// Refuses the value of a setting that is not allowed.
    pub(crate) fn check(&self, field: &str, value: &T) -> anyhow::Result<()> {
        let flag = name_of(field);
        match self {
            Self::AtLeast(least) if value < least => {
                bail!("--{flag} {value} is too little; give at least {least}")
            }
            Self::Between(least, most) if !(least..=most).contains(&value) => {
                bail!("--{flag} {value}: give {least} to {most}")
            }
            Self::If { range, complaint, holds } if !holds(value) => {
                let complaint = complaint.replace("{range}", range);
                bail!("--{flag}{}", complaint.replace("{value}", &value.to_string()))
            }
            Self::AtLeast(_) | Self::Between(..) | Self::If { .. } => Ok(()),
        }
    }

    /// The same, for people.
    #[cfg(test)]
    pub(crate) fn range(&self) -> String {
        match self {
            Self::AtLeast(least) => format!("{least} and more"),
            Self::Between(least, most) => format!("{least} to {most}"),
            Self::If { range, .. } => (*range).to_owned(),
        }
    }
}

/// The value of a setting as it may be logged: of a password nothing.
pub(crate) fn shown_value<'a>(field: &str, value: &'a dyn Debug) -> &'a dyn Debug {
    if field == "password" { &"(secret)" } else { value }
}

/// The name of a setting on a command line and in a file.
pub(crate) fn name_of(field: &str) -> String {
    field.replace('_', "-")
}

/// A flag whose help says what it is when nobody says it.
pub(crate) fn with_default(arg: Arg, default: Option<String>) -> Arg {
    match (arg.get_help().map(ToString::to_string), default) {
        (Some(help), Some(default)) => arg.help(format!("{help} [default: {default}]")),
        _ => arg,
    }
}

/// The table of settings. A row has the setting's help, flag and variable as `clap` takes them, its
/// name and type, and between braces, in this order:
///
/// - `default: <value>`, with `=> <text>` behind it where the text is not the value's own; or
///   `unsaid: <text>` for what is left to others to decide when nobody says it;
/// - `allowed: <Allowed>`, where the type allows too much;
/// - `parameter: <name>` and `route: <route>`: what changes it while the node runs.
macro_rules! settings {
    ($(
        $(#[doc = $doc:tt])+
        #[arg($($arg:tt)*)]
        $(#[serde($serde:ident)])?
        $field:ident: $type:ty {
            $(default: $default:expr $(=> $text:literal)?,)?
            $(unsaid: $unsaid:expr,)?
            $(allowed: $allowed:expr,)?
            $(parameter: $parameter:literal,)?
            $(route: $route:literal,)?
        }
    )+) => {
        /// What an operator may say. Every field is optional: what nobody says has a default.
        #[derive(Args, Clone, Default, Deserialize, PartialEq, Eq)]
        #[serde(deny_unknown_fields, rename_all = "kebab-case", default)]
        #[command(mut_args = Settings::described)]
        pub(crate) struct Settings {
            $(
                $(#[doc = $doc])+
                #[arg($($arg)*)]
                $(#[serde($serde)])?
                pub(crate) $field: Option<$type>,
            )+
        }

        /// What `settee serve` can start with: every setting has a value that is allowed, or is
        /// left to others to decide.
        #[derive(Clone)]
        pub(crate) struct ServeConfig {
            $(
                $(#[doc = $doc])+
                pub(crate) $field: settings!(@type $type $(, $default)?),
            )+
        }

        impl Debug for Settings {
            fn fmt(&self, formatter: &mut Formatter<'_>) -> fmt::Result {
                let mut shown = formatter.debug_struct("Settings");
                $(shown.field(stringify!($field), shown_value(stringify!($field), &self.$field));)+
                shown.finish()
            }
        }

        impl Debug for ServeConfig {
            fn fmt(&self, formatter: &mut Formatter<'_>) -> fmt::Result {
                let mut shown = formatter.debug_struct("ServeConfig");
                $(shown.field(stringify!($field), shown_value(stringify!($field), &self.$field));)+
                shown.finish()
            }
        }

        impl Settings {
            /// These settings, and for what they do not say those of `other`.
            #[must_use]
            pub(crate) fn or(self, other: Self) -> Self {
                Self { $($field: self.$field.or(other.$field),)+ }
            }

            /// The names of those that `other` says otherwise.
            pub(crate) fn differences(&self, other: &Self) -> Vec<String> {
                let mut names = Vec::new();
                $(if self.$field != other.$field {
                    names.push(name_of(stringify!($field)));
                })+
                names
            }

            /// Fills in what is not said and refuses what is not allowed.
            pub(crate) fn settled(self) -> anyhow::Result<ServeConfig> {
                let filled =
                    Self { $($field: settings!(@filled self.$field $(, $default)?),)+ };
                $($(
                    if let Some(value) = &filled.$field {
                        Allowed::<$type>::check(&$allowed, stringify!($field), value)?;
                    }
                )?)+
                Ok(ServeConfig { $($field: settings!(@value filled.$field $(, $default)?),)+ })
            }

            fn described(arg: Arg) -> Arg {
                let default = Self::default_text(arg.get_id().as_str());
                with_default(arg, default)
            }

            /// What a setting is when nobody says it, for people.
            pub(crate) fn default_text(field: &str) -> Option<String> {
                match field {
                    $(stringify!($field) => {
                        settings!(@text $type, $($default $(=> $text)?)? $(; $unsaid)?)
                    })+
                    _ => None,
                }
            }
        }

        /// What docs/configuration.md says of a setting beside what `clap` knows.
        #[cfg(test)]
        impl Settings {
            /// What it may be.
            pub(crate) fn range_text(field: &str) -> String {
                match field {
                    $(stringify!($field) => {
                        let ranges: [String; _] = [$(Allowed::<$type>::range(&$allowed),)?];
                        let of_type = <$type as crate::setting_values::SettingValue>::range;
                        ranges.into_iter().next().unwrap_or_else(of_type)
                    })+
                    _ => String::new(),
                }
            }

            /// The parameter that changes it while the node runs.
            pub(crate) fn parameter(field: &str) -> Option<&'static str> {
                match field {
                    $($(stringify!($field) => Some($parameter),)?)+
                    _ => None,
                }
            }

            /// The REST route that changes it while the node runs.
            pub(crate) fn route(field: &str) -> Option<&'static str> {
                match field {
                    $($(stringify!($field) => Some($route),)?)+
                    _ => None,
                }
            }
        }
    };
    (@type $type:ty, $default:expr) => { $type };
    (@type $type:ty) => { Option<$type> };
    (@filled $said:expr, $default:expr) => { $said.or_else(|| Some($default)) };
    (@filled $said:expr) => { $said };
    (@value $said:expr, $default:expr) => { $said.unwrap_or_else(|| $default) };
    (@value $said:expr) => { $said };
    (@text $type:ty, $default:expr => $text:literal) => { Some($text.to_owned()) };
    (@text $type:ty, $default:expr) => {{
        let default: $type = $default;
        Some(default.to_string())
    }};
    (@text $type:ty, ; $unsaid:expr) => { Some($unsaid.to_string()) };
    (@text $type:ty,) => { None };
}
pub(crate) use settings;
