//! Memory for slabs: spans of 64 KiB at multiples of that, out of regions that are mapped once.
//!
//! What is given back is kept for as long as the allocator keeps what is freed
//! ([`kept_duration`]), and then goes back to the system. Its addresses stay mapped.

use std::collections::VecDeque;
use std::ptr::NonNull;
use std::sync::{Mutex, MutexGuard, PoisonError};

use memmap2::{Advice, MmapMut, UncheckedAdvice};

use crate::allocator::kept_memory::kept_duration;
use crate::clock::{Clock, Instant};

/// Bytes of a span.
pub(crate) const SPAN_SIZE: usize = 64 << 10;
/// Spans of a region: 32 MiB of addresses.
const REGION_SPANS: usize = 512;
/// Spans that one which is given back takes with it to the system: more than come, so that what is
/// overdue gets less, and few enough for a thread that clients wait for.
const RELEASES_PER_SPAN: usize = 2;

/// A span by its place.
#[derive(Clone, Copy, Debug)]
pub(super) struct Span {
    region: u32,
    number: u32,
}

/// All spans there are.
#[derive(Debug)]
pub(super) struct Spans(Mutex<State>);

#[derive(Debug)]
struct State {
    regions: Vec<Region>,
    /// Free, and when they became that: the oldest first.
    kept: VecDeque<(Span, Instant)>,
    /// Free, their memory given back to the system.
    bare: Vec<Span>,
}

#[derive(Debug)]
struct Region {
    mapping: MmapMut,
    /// Where the first span begins.
    start: usize,
    /// Spans that have been in use.
    used_count: usize,
}

impl Spans {
    pub(super) const fn new() -> Self {
        Self(Mutex::new(State { regions: Vec::new(), kept: VecDeque::new(), bare: Vec::new() }))
    }

    /// A span and its first byte. `None` if the system has no memory.
    pub(super) fn take(&self) -> Option<(NonNull<u8>, Span)> {
        let mut state = self.lock();
        // The one that was freed last, and bare ones only then: these are faulted in page by page.
        let free = state.kept.pop_back().map(|(span, _)| span).or_else(|| state.bare.pop());
        let span = match free {
            Some(span) => span,
            None => state.fresh()?,
        };
        let address = state.region(span).mapping.as_mut_ptr();
        let start = state.region(span).start_of(span);
        Some((NonNull::new(address)?.map_addr(|address| address.saturating_add(start)), span))
    }

    /// Takes back a span that nobody uses any more.
    pub(super) fn give_back(&self, span: Span) {
        self.lock().kept.push_back((span, Clock::real().now()));
        self.release_overdue(RELEASES_PER_SPAN);
    }

    /// Gives up to `count_max` spans back to the system that have been free for long.
    pub(super) fn release_overdue(&self, count_max: usize) {
        let Some(kept_for) = kept_duration() else { return };
        let now = Clock::real().now();
        let is_due = |freed_at: Instant| now >= freed_at.after(kept_for);
        (0..count_max).find(|_| !self.release_oldest(is_due));
    }

    /// Gives everything that is free back to the system.
    pub(super) fn release_all(&self) {
        while self.release_oldest(|_| true) {}
    }

    /// Under a lock of its own for each: others wait for one system call, not for many.
    fn release_oldest(&self, is_due: impl Fn(Instant) -> bool) -> bool {
        let mut state = self.lock();
        let oldest = state.kept.pop_front_if(|(_, freed_at)| is_due(*freed_at));
        let Some((span, _)) = oldest else { return false };
        state.region(span).release(span);
        state.bare.push(span);
        true
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl State {
    /// A span that has never been used.
    fn fresh(&mut self) -> Option<Span> {
        if self.regions.last().is_none_or(|region| region.used_count == REGION_SPANS) {
            self.regions.push(Region::map()?);
        }
        let region = u32::try_from(self.regions.len() - 1).ok()?;
        let last = self.regions.last_mut()?;
        let number = u32::try_from(last.used_count).ok()?;
        last.used_count += 1;
        Some(Span { region, number })
    }

    fn region(&mut self, span: Span) -> &mut Region {
        &mut self.regions[span.region as usize]
    }
}

impl Region {
    fn map() -> Option<Self> {
        // One more than are used: a mapping begins at any page, and spans at multiples of their
        // size.
        let mapping = MmapMut::map_anon((REGION_SPANS + 1) * SPAN_SIZE).ok()?;
        #[cfg(target_os = "linux")]
        drop(mapping.advise(Advice::NoHugePage));
        let start = mapping.as_ptr().align_offset(SPAN_SIZE);
        assert!(start < SPAN_SIZE, "an address of bytes can be aligned");
        Some(Self { mapping, start, used_count: 0 })
    }

    /// Where a span begins, from the beginning of the mapping.
    fn start_of(&self, span: Span) -> usize {
        self.start + span.number as usize * SPAN_SIZE
    }

    fn release(&self, span: Span) {
        let start = self.start_of(span);
        // Without success the memory stays, and is used again.
        #[cfg(target_os = "linux")]
        // SAFETY: the span is free, so nobody relies on what is in it.
        drop(unsafe {
            self.mapping.unchecked_advise_range(UncheckedAdvice::DontNeed, start, SPAN_SIZE)
        });
    }
}
