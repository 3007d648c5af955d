//! Hit ratios of a full memory: the frequency counter, through the strategies that the item pager
//! has, beside plain LRU with the same watermarks, on the same reads. No server takes part.

use anyhow::Result;
use peers::options::Options;
use peers::report::{self, Figure};
use peers::zipf::{EXPONENT, Zipf};
use platform::Random;
use serde_json::json;
use vbucket::eviction::{
    Evictable, EvictionStrategy, FrequencyHistogram, PagingPlan, StrategyKind, Verdict, Watermarks,
    frequency_counter,
};

const BENCH: &str = "eviction";
const DOCUMENTS: usize = 500_000;
const DOCUMENTS_QUICK: usize = 20_000;
/// Reads for each document, the first half of them to fill memory and not counted.
const READS_PER_DOCUMENT: usize = 20;
/// Quota by size of all documents, in percent.
const MEMORY_PERCENTS: [usize; 5] = [5, 10, 20, 40, 60];
const LOW_WATERMARK: f64 = 0.75;
const HIGH_WATERMARK: f64 = 0.85;
/// In the workload with scans: after so many reads for each document all are read once in order.
const READS_BETWEEN_SCANS: usize = 4;

/// In the workload that drifts: how often the part of each document goes to another one.
const DRIFTS: usize = 2;

/// A memory with a quota, in documents of one size.
trait Memory {
    /// Reads a document; says whether it was in memory.
    fn read(&mut self, document: usize) -> bool;
}

fn main() -> Result<()> {
    let options = Options::from_command_line(1)?;
    let documents = if options.quick { DOCUMENTS_QUICK } else { DOCUMENTS };
    let zipf = Zipf::new(documents);
    println!(
        "{documents} documents of one size, {READS_PER_DOCUMENT} reads each, \
         Zipf({EXPONENT}), watermarks {LOW_WATERMARK} and {HIGH_WATERMARK} of the quota\n"
    );
    println!(
        "{:<12} {:>8} {:>12} {:>18} {:>12}",
        "", "memory", "lasting_mfu", "upfront_mfu_only", "LRU"
    );
    let mut figures = Vec::new();
    for workload in [Workload::Still, Workload::Scanned, Workload::Drifting] {
        for percent in MEMORY_PERCENTS {
            let marks = watermarks(documents * percent / 100);
            let of_kind = |kind| {
                let mut memory = FrequencyMemory::new(documents, marks, kind);
                hit_ratio(&mut memory, &mut Reads::new(&zipf, workload))
            };
            let lasting = of_kind(StrategyKind::LastingMfu);
            let upfront = of_kind(StrategyKind::UpfrontMfuOnly);
            let lru =
                hit_ratio(&mut LruMemory::new(documents, marks), &mut Reads::new(&zipf, workload));
            println!(
                "{:<12} {percent:>7}% {lasting:>12.4} {upfront:>18.4} {lru:>12.4}",
                workload.name()
            );
            for (name, value) in
                [("lasting_mfu", lasting), ("upfront_mfu_only", upfront), ("lru", lru)]
            {
                figures.push(Figure {
                    bench: BENCH,
                    variant: name.to_owned(),
                    params: json!({ "workload": workload.name(), "memory_percent": percent }),
                    metric: "hit_ratio",
                    unit: "ratio",
                    rounds: vec![value],
                });
            }
        }
    }
    report::append(options.json.as_deref(), &figures)
}

fn watermarks(quota: usize) -> Watermarks {
    let part = |ratio: f64| (quota as f64 * ratio) as u64;
    Watermarks { low_bytes: part(LOW_WATERMARK), high_bytes: part(HIGH_WATERMARK) }
}

fn hit_ratio(memory: &mut impl Memory, reads: &mut Reads<'_>) -> f64 {
    let count = reads.zipf.documents() * READS_PER_DOCUMENT;
    let (mut asked, mut hits) = (0_u64, 0_u64);
    for index in 0..count {
        let (document, is_scan) = reads.next();
        let hit = memory.read(document);
        if index >= count / 2 && !is_scan {
            asked += 1;
            hits += u64::from(hit);
        }
    }
    hits as f64 / asked as f64
}

/// What the reads are like.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Workload {
    /// The same documents are popular for ever.
    Still,
    /// Every now and then all documents are read once, in order.
    Scanned,
    /// One popular document after the other is replaced by another one.
    Drifting,
}

impl Workload {
    fn name(self) -> &'static str {
        match self {
            Self::Still => "zipf",
            Self::Scanned => "zipf+scans",
            Self::Drifting => "zipf+drift",
        }
    }
}

/// Which document is read next.
struct Reads<'a> {
    zipf: &'a Zipf,
    random: Random,
    workload: Workload,
    done: usize,
}

impl<'a> Reads<'a> {
    fn new(zipf: &'a Zipf, workload: Workload) -> Self {
        Self { zipf, random: Random::from_seed(1), workload, done: 0 }
    }

    /// The document, and whether a scan reads it.
    fn next(&mut self) -> (usize, bool) {
        let documents = self.zipf.documents();
        let position = self.done % (documents * (READS_BETWEEN_SCANS + 1));
        self.done += 1;
        let in_scan = position.checked_sub(documents * READS_BETWEEN_SCANS);
        if let Some(document) = in_scan
            && self.workload == Workload::Scanned
        {
            return (document, true);
        }
        let document = self.zipf.draw(&mut self.random);
        if self.workload == Workload::Drifting {
            return (self.drifted(document), false);
        }
        (document, false)
    }

    /// The document that plays the part of `document` now. Parts are given to others one after the
    /// other, each `DRIFTS` times in a run.
    fn drifted(&self, document: usize) -> usize {
        let documents = self.zipf.documents();
        let run = documents * READS_PER_DOCUMENT;
        // A hash of the document says when its turn comes.
        let offset = document.wrapping_mul(0x9e37_79b1) % documents;
        let turns = (self.done * DRIFTS + offset * (run / documents)) / run;
        (document + turns * 7919) % documents
    }
}

/// Counters, thresholds and a walk that goes on where the one before has ended.
struct FrequencyMemory {
    /// By document: its counter, if it is in memory.
    counters: Vec<Option<u8>>,
    used: u64,
    marks: Watermarks,
    hand: usize,
    initial: u8,
    kind: StrategyKind,
    random: Random,
}

impl FrequencyMemory {
    fn new(documents: usize, marks: Watermarks, kind: StrategyKind) -> Self {
        let (counters, random) = (vec![None; documents], Random::from_seed(3));
        let initial = frequency_counter::INITIAL;
        Self { counters, used: 0, marks, hand: 0, initial, kind, random }
    }

    fn page(&mut self) {
        while self.used > self.marks.low_bytes {
            let mut histogram = FrequencyHistogram::default();
            self.counters.iter().flatten().for_each(|&counter| histogram.record(counter));
            self.initial = self.kind.initial_frequency(&histogram);
            let evictable = Evictable { replica_bytes: 0, active_bytes: self.used };
            let plan = PagingPlan::new(self.marks.bytes_to_page(self.used), evictable);
            self.walk(self.kind.strategy(&histogram, plan.active_ratio));
        }
    }

    fn walk(&mut self, strategy: EvictionStrategy) {
        for _ in 0..self.counters.len() {
            if self.used <= self.marks.low_bytes {
                return;
            }
            let next = (self.hand + 1) % self.counters.len();
            let entry = &mut self.counters[std::mem::replace(&mut self.hand, next)];
            let Some(counter) = *entry else { continue };
            *entry = match strategy.judge(counter, (self.random.next_u64() >> 32) as u32) {
                Verdict::Keep(counter) => Some(counter),
                Verdict::Evict => {
                    self.used -= 1;
                    None
                }
            };
        }
    }

    fn decay(&mut self) {
        for counter in self.counters.iter_mut().flatten() {
            *counter = frequency_counter::after_decay(*counter, frequency_counter::DECAY_PERCENT);
        }
    }
}

impl Memory for FrequencyMemory {
    fn read(&mut self, document: usize) -> bool {
        let is_hit = self.counters[document].is_some();
        if !is_hit {
            self.used += 1;
        }
        let before = self.counters[document].unwrap_or(self.initial);
        // The request that waited for the value reads it, too.
        let random_bits = (self.random.next_u64() >> 32) as u32;
        let after = frequency_counter::after_read(before, random_bits);
        self.counters[document] = Some(after);
        if after == frequency_counter::SATURATED {
            self.decay();
        }
        if self.used > self.marks.high_bytes {
            self.page();
        }
        is_hit
    }
}

/// The document that was not read for the longest time leaves first: a list through an array.
struct LruMemory {
    /// By document: its neighbours, the older and the newer; the last element is both ends.
    neighbours: Vec<(usize, usize)>,
    is_resident: Vec<bool>,
    used: u64,
    marks: Watermarks,
}

impl LruMemory {
    fn new(documents: usize, marks: Watermarks) -> Self {
        let neighbours = vec![(documents, documents); documents + 1];
        Self { neighbours, is_resident: vec![false; documents], used: 0, marks }
    }

    fn unlink(&mut self, document: usize) {
        let (older, newer) = self.neighbours[document];
        self.neighbours[older].1 = newer;
        self.neighbours[newer].0 = older;
    }

    fn link_newest(&mut self, document: usize) {
        let ends = self.is_resident.len();
        let newest = self.neighbours[ends].0;
        self.neighbours[document] = (newest, ends);
        self.neighbours[newest].1 = document;
        self.neighbours[ends].0 = document;
    }
}

impl Memory for LruMemory {
    fn read(&mut self, document: usize) -> bool {
        let is_hit = self.is_resident[document];
        if is_hit {
            self.unlink(document);
        } else {
            self.is_resident[document] = true;
            self.used += 1;
        }
        self.link_newest(document);
        if self.used > self.marks.high_bytes {
            while self.used > self.marks.low_bytes {
                let oldest = self.neighbours[self.is_resident.len()].1;
                self.unlink(oldest);
                self.is_resident[oldest] = false;
                self.used -= 1;
            }
        }
        is_hit
    }
}
