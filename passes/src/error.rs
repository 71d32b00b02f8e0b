//! What can go wrong between a verified function and its fold program.

/// An error of this crate.
#[derive(Clone, Debug, thiserror::Error, PartialEq, Eq)]
pub enum PassError {
    /// The interpreter runs it, kernels do not yet.
    #[error("{what} is not supported in compiled kernels yet (the interpreter runs it: --backend interp)")]
    Unsupported {
        /// What is not.
        what: String,
    },
    /// A bug of ours.
    #[error("internal error, this is a bug in onefold: {what}")]
    Internal {
        /// What went wrong.
        what: String,
    },
}

impl PassError {
    pub(crate) fn unsupported(what: impl Into<String>) -> PassError {
        PassError::Unsupported { what: what.into() }
    }

    pub(crate) fn internal(what: impl Into<String>) -> PassError {
        PassError::Internal { what: what.into() }
    }
}
