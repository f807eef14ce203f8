//! Reads model files up to a size limit. An error names the file.

use std::fs::File;
use std::io::{ErrorKind, Read};
use std::path::Path;

use crate::error::{Result, TextError};

/// The whole file; NotFound where there is none, LimitExceeded above `limit` bytes.
pub fn read(path: &Path, limit: u64) -> Result<Vec<u8>> {
    let name = path.display();
    let open = File::open(path).and_then(|file| Ok((file.metadata()?.is_file(), file)));
    let file = match open {
        Ok((true, file)) => file,
        Ok((false, _)) => return Err(TextError::invalid(format!("{name} must be a file"))),
        Err(error) if error.kind() == ErrorKind::NotFound => {
            return Err(TextError::not_found(format!("{name} does not exist")));
        }
        Err(error) => return Err(TextError::invalid(format!("{name}: {error}"))),
    };
    let mut bytes = Vec::new();
    file.take(limit + 1)
        .read_to_end(&mut bytes)
        .map_err(|error| TextError::invalid(format!("{name}: {error}")))?;
    if bytes.len() as u64 > limit {
        return Err(TextError::limit(format!(
            "{name} must have at most {limit} bytes"
        )));
    }
    Ok(bytes)
}

/// Reads the file as `read` does and parses it as JSON. None if there is no such file.
pub fn read_json(path: &Path, limit: u64) -> Result<Option<serde_json::Value>> {
    match read(path, limit) {
        Ok(bytes) => serde_json::from_slice(&bytes)
            .map(Some)
            .map_err(|error| TextError::invalid(format!("{}: {error}", path.display()))),
        Err(error) if error.code == crate::error::Code::NotFound => Ok(None),
        Err(error) => Err(error),
    }
}
