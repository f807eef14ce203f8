//! How many bytes one rendering may produce, in captured blocks and joined texts too.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use minijinja::{Error, ErrorKind};

/// Shared by the filters and the output of one rendering.
#[derive(Debug)]
pub struct Budget {
    left: AtomicU64,
    spent: AtomicBool,
}

impl Budget {
    pub fn new(bytes: u64) -> Self {
        Self {
            left: AtomicU64::new(bytes),
            spent: AtomicBool::new(false),
        }
    }

    /// Call before the bytes are produced.
    pub fn take(&self, bytes: usize) -> Result<(), Error> {
        let left = self.left.load(Ordering::Relaxed);
        match left.checked_sub(bytes as u64) {
            Some(rest) => {
                self.left.store(rest, Ordering::Relaxed);
                Ok(())
            }
            None => {
                self.spent.store(true, Ordering::Relaxed);
                Err(Error::new(ErrorKind::OutOfFuel, "output is too large"))
            }
        }
    }

    pub fn is_spent(&self) -> bool {
        self.spent.load(Ordering::Relaxed)
    }
}
