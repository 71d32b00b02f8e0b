//! Memory between pages that must not be touched: an access outside an array ends the process there and then.

/// Pages with a guard on both sides.
pub struct Guarded {
    base: *mut u8,
    whole: usize,
    page: usize,
}

impl Guarded {
    /// Room for that many bytes, all 0.
    pub fn new(bytes: usize) -> Guarded {
        // SAFETY: no arguments that could be wrong.
        let page = unsafe { libc::sysconf(libc::_SC_PAGESIZE) } as usize;
        let whole = bytes.next_multiple_of(page).max(page) + 2 * page;
        let flags = libc::MAP_PRIVATE | libc::MAP_ANONYMOUS;
        // SAFETY: a fresh anonymous mapping, of which the inner pages are then opened.
        let base = unsafe { libc::mmap(std::ptr::null_mut(), whole, libc::PROT_NONE, flags, -1, 0) };
        assert_ne!(base, libc::MAP_FAILED);
        let base = base.cast::<u8>();
        // SAFETY: the range lies inside the mapping.
        let status =
            unsafe { libc::mprotect(base.add(page).cast(), whole - 2 * page, libc::PROT_READ | libc::PROT_WRITE) };
        assert_eq!(status, 0);
        Guarded { base, whole, page }
    }

    /// Where `bytes` bytes start that end (or begin) at a guard; valid as long as this is.
    pub fn place(&mut self, bytes: usize, at_end: bool) -> *mut u8 {
        assert!(bytes <= self.whole - 2 * self.page);
        let offset = if at_end { self.whole - self.page - bytes } else { self.page };
        // SAFETY: inside the open pages.
        unsafe { self.base.add(offset) }
    }

    /// That many bytes, which end (or begin) at a guard.
    pub fn bytes(&mut self, bytes: usize, at_end: bool) -> &mut [u8] {
        // SAFETY: inside the open pages, which are initialised; borrowed exclusively.
        unsafe { std::slice::from_raw_parts_mut(self.place(bytes, at_end), bytes) }
    }

    /// That many floats, which end (or begin) at a guard.
    pub fn floats(&mut self, len: usize, at_end: bool) -> &mut [f32] {
        // SAFETY: inside the open pages, which are zero or written as f32; aligned to 4; borrowed exclusively.
        unsafe { std::slice::from_raw_parts_mut(self.place(4 * len, at_end).cast(), len) }
    }
}

impl Drop for Guarded {
    fn drop(&mut self) {
        // SAFETY: mapped in `new`, unmapped once.
        unsafe { libc::munmap(self.base.cast(), self.whole) };
    }
}
