//! Memory on 64-byte boundaries: a cache line, and the widest vector register in use.

use std::alloc::{alloc, alloc_zeroed, dealloc, Layout};
use std::fmt;
use std::ptr::NonNull;

/// Alignment of every buffer, in bytes.
pub const ALIGNMENT: usize = 64;

/// That much memory is not to be had.
#[derive(Clone, Copy, Debug, thiserror::Error, PartialEq, Eq)]
#[error("{bytes} bytes of memory are not available")]
pub struct OutOfMemory {
    /// Bytes asked for.
    pub bytes: usize,
}

/// An allocation. The block is larger than what is used of it: the used part starts at the first multiple of
/// [`ALIGNMENT`]. (An allocator that is asked for alignment cannot use pages that the system zeroes lazily.)
struct Block {
    start: NonNull<u8>,
    layout: Layout,
    used: NonNull<u8>,
}

// SAFETY: a block is plain memory with one owner; nothing about it is bound to a thread.
unsafe impl Send for Block {}
// SAFETY: through a shared reference a block is only read (`Buffer`), or not touched at all (`Scratch`).
unsafe impl Sync for Block {}

impl Block {
    fn new(bytes: usize, zeroed: bool) -> Result<Block, OutOfMemory> {
        let error = OutOfMemory { bytes };
        let whole = bytes.checked_add(ALIGNMENT).ok_or(error)?;
        let layout = Layout::from_size_align(whole, 16).map_err(|_| error)?;
        // SAFETY: the layout's size is at least `ALIGNMENT`, hence not 0.
        let start = unsafe {
            if zeroed {
                alloc_zeroed(layout)
            } else {
                alloc(layout)
            }
        };
        let start = NonNull::new(start).ok_or(error)?;
        let skip = start.as_ptr().align_offset(ALIGNMENT).min(ALIGNMENT);
        // SAFETY: `skip` is at most `ALIGNMENT`, by which the allocation is longer than `bytes`.
        let used = unsafe { start.add(skip) };
        Ok(Block { start, layout, used })
    }
}

impl Drop for Block {
    fn drop(&mut self) {
        // SAFETY: allocated in `new` with this very layout, and freed once.
        unsafe { dealloc(self.start.as_ptr(), self.layout) }
    }
}

/// Initialised bytes on a 64-byte boundary.
pub struct Buffer {
    block: Block,
    len: usize,
}

impl Buffer {
    /// Bytes that are all 0.
    ///
    /// # Errors
    /// There is not as much memory.
    pub fn zeroed(len: usize) -> Result<Buffer, OutOfMemory> {
        Ok(Buffer { block: Block::new(len, true)?, len })
    }

    /// A copy of some bytes.
    ///
    /// # Errors
    /// There is not as much memory.
    pub fn copied(bytes: &[u8]) -> Result<Buffer, OutOfMemory> {
        let mut buffer = Buffer::zeroed(bytes.len())?;
        buffer.as_mut_slice().copy_from_slice(bytes);
        Ok(buffer)
    }

    /// The bytes.
    pub fn as_slice(&self) -> &[u8] {
        // SAFETY: the block is at least `len` bytes long from `used` on, initialised in `zeroed`, and owned.
        unsafe { std::slice::from_raw_parts(self.block.used.as_ptr(), self.len) }
    }

    /// The bytes, to be changed.
    pub fn as_mut_slice(&mut self) -> &mut [u8] {
        // SAFETY: as in `as_slice`; the borrow is exclusive.
        unsafe { std::slice::from_raw_parts_mut(self.block.used.as_ptr(), self.len) }
    }
}

impl fmt::Debug for Buffer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Buffer({} bytes)", self.len)
    }
}

/// Memory that a kernel may use while it runs; its contents are undefined.
pub struct Scratch {
    block: Block,
}

impl Scratch {
    /// Memory for one call.
    ///
    /// # Errors
    /// There is not as much memory.
    pub fn new(bytes: usize) -> Result<Scratch, OutOfMemory> {
        Ok(Scratch { block: Block::new(bytes, false)? })
    }

    /// Where it begins: a multiple of [`ALIGNMENT`].
    pub fn as_mut_ptr(&mut self) -> *mut u8 {
        self.block.used.as_ptr()
    }
}

impl fmt::Debug for Scratch {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Scratch")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn buffers_are_aligned_and_zero() {
        for len in [0, 1, 63, 64, 65, 1 << 16] {
            let mut buffer = Buffer::zeroed(len).expect("memory");
            assert_eq!(buffer.as_slice().as_ptr() as usize % ALIGNMENT, 0);
            assert!(buffer.as_slice().iter().all(|b| *b == 0));
            buffer.as_mut_slice().fill(7);
            assert_eq!(buffer.as_slice().len(), len);
            assert_eq!(Scratch::new(len).expect("memory").as_mut_ptr() as usize % ALIGNMENT, 0);
        }
    }

    #[test]
    fn too_much_is_an_error() {
        assert_eq!(Buffer::zeroed(usize::MAX).unwrap_err(), OutOfMemory { bytes: usize::MAX });
        assert!(Scratch::new(usize::MAX / 2).is_err());
    }
}
