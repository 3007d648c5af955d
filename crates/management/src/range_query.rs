//! What is asked of the figures of the last minutes: from when to when, in which steps, and what is
//! made of them. Source: the original's documentation of `/pools/default/stats/range`.

mod aggregate;
mod function;

pub(crate) use self::aggregate::Aggregate;
pub(crate) use self::function::Function;
use self::function::is_percentile;
use crate::stats_history::{INTERVAL_SECONDS_MAX, MONTH_SECONDS, Point, Series};

/// Between two values, unless another step is said.
const STEP_SECONDS: u64 = 10;
/// What functions look back over, unless another window is said; a value is looked for as long.
const WINDOW_SECONDS: u64 = 60;
/// Values of one figure in an answer, as with Prometheus.
const VALUES_MAX: u64 = 11_000;
/// Values of all figures in an answer: it is built whole, in some 30 MB.
const ANSWER_VALUES_MAX: u64 = 200_000;
/// Samples that are looked at for an answer, those of each window counted anew: some 100 ms of the
/// thread that answers everybody.
const ANSWER_SAMPLES_MAX: u64 = 50_000_000;

/// What is asked.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct RangeQuery {
    /// Since 1970, as the others: the first moment that is asked about, and the last one.
    pub(crate) start_seconds: u64,
    pub(crate) end_seconds: u64,
    pub(crate) step_seconds: u64,
    pub(crate) window_seconds: u64,
    /// What is made of each figure.
    pub(crate) function: Option<Function>,
    /// What is made of all of them together behind that, from the first to the last.
    pub(crate) aggregates: Vec<Aggregate>,
}

/// What is left of what one answer may take, whatever many queries and figures it is for.
#[derive(Debug)]
pub(crate) struct AnswerRoom {
    values: u64,
    samples: u64,
}

impl Default for AnswerRoom {
    fn default() -> Self {
        Self { values: ANSWER_VALUES_MAX, samples: ANSWER_SAMPLES_MAX }
    }
}

impl AnswerRoom {
    fn take(&mut self, values: u64, samples: u64) -> Result<(), String> {
        let left = self.values.checked_sub(values).zip(self.samples.checked_sub(samples));
        let Some((values, samples)) = left else {
            return Err(format!(
                "an answer has at most {ANSWER_VALUES_MAX} values of all figures, and is made of \
                 at most {ANSWER_SAMPLES_MAX} samples; say a longer step, a shorter window or more \
                 labels"
            ));
        };
        *self = Self { values, samples };
        Ok(())
    }
}

impl RangeQuery {
    /// The last minute, as it is.
    pub(crate) fn until(now_seconds: u64) -> Self {
        Self {
            start_seconds: now_seconds.saturating_sub(WINDOW_SECONDS),
            end_seconds: now_seconds,
            step_seconds: STEP_SECONDS,
            window_seconds: WINDOW_SECONDS,
            function: None,
            aggregates: Vec::new(),
        }
    }

    /// Takes a function in, which is applied behind those before it.
    ///
    /// # Errors
    /// There is none of that name, or it cannot be applied to what those make.
    pub(crate) fn take_function(&mut self, name: &str) -> Result<(), String> {
        if let Some(aggregate) = Aggregate::by_name(name) {
            self.aggregates.push(aggregate);
            return Ok(());
        }
        if is_percentile(name) {
            let why = "percentiles are of histograms, which the node does not remember: \
                       GET /metrics and GET /settee/buckets/{bucket}/timings tell those of now";
            return Err(why.to_owned());
        }
        let Some(function) = Function::by_name(name) else {
            let why = "The value must be one of: rate, irate, increase, avg_over_time, \
                       min_over_time, max_over_time, deriv, delta, idelta, sum, min, max, avg";
            return Err(why.to_owned());
        };
        if self.function.is_some() || !self.aggregates.is_empty() {
            return Err("behind a function there may be only sum, min, max and avg".to_owned());
        }
        self.function = Some(function);
        Ok(())
    }

    /// Takes a parameter in. False if there is none of that name.
    ///
    /// # Errors
    /// What is wrong with its value.
    pub(crate) fn take(
        &mut self,
        name: &str,
        value: &str,
        now_seconds: u64,
    ) -> Result<bool, String> {
        match name {
            "start" => self.start_seconds = moment(value, now_seconds)?,
            "end" => self.end_seconds = moment(value, now_seconds)?,
            "step" => self.step_seconds = positive(value)?,
            "timeWindow" => self.window_seconds = positive(value)?,
            // One node answers, for itself, and at once.
            "timeout" | "alignTimestamps" => {}
            "nodesAggregation" => match value {
                "none" | "sum" | "min" | "max" | "avg" => {}
                _ => return Err("The value must be one of: none, sum, min, max, avg".to_owned()),
            },
            _ => return Ok(false),
        }
        Ok(true)
    }

    /// The values of a figure at each step at which there are any.
    ///
    /// # Errors
    /// The answer would take more than it may: nothing has been looked at.
    pub(crate) fn values_of(
        &self,
        series: &Series,
        room: &mut AnswerRoom,
    ) -> Result<Vec<Point>, String> {
        let Some((oldest, newest)) = series.points.first().zip(series.points.last()) else {
            return Ok(Vec::new());
        };
        let window = self.window_of(series);
        // Where there was nothing, or will be, there is nothing to be looked at.
        let steps_before = oldest.seconds.saturating_sub(self.start_seconds) / self.step_seconds;
        let from =
            self.start_seconds.saturating_add(steps_before.saturating_mul(self.step_seconds));
        let to = self.end_seconds.min(newest.seconds.saturating_add(window));
        // A window of years has the last value count for as long, whatever span there is of it.
        let count =
            to.checked_sub(from).map_or(0, |span| (span / self.step_seconds).saturating_add(1));
        room.take(count, self.samples_for(series, count))?;
        let moments = std::iter::successors(Some(from), |at| at.checked_add(self.step_seconds));
        let moments = moments.take_while(|at| *at <= to);
        let values =
            moments.filter_map(|at| Some(Point { seconds: at, value: self.value_at(series, at)? }));
        Ok(values.collect())
    }

    /// Samples that so many values are made of, at most: a function looks at the whole window.
    fn samples_for(&self, series: &Series, values: u64) -> u64 {
        let all = u64::try_from(series.points.len()).unwrap_or(u64::MAX);
        let in_window = self.window_of(series) / series.interval_seconds.max(1);
        let each = if self.function.is_none() { 1 } else { in_window.saturating_add(1).min(all) };
        values.saturating_mul(each).saturating_add(all)
    }

    /// Where figures are far apart there have to be two of them in the window.
    fn window_of(&self, series: &Series) -> u64 {
        self.window_seconds.max(2 * series.interval_seconds)
    }

    /// From when on figures are needed: the first value may be made of those in its window.
    pub(crate) fn needed_since_seconds(&self) -> u64 {
        self.start_seconds.saturating_sub(self.window_seconds.max(2 * INTERVAL_SECONDS_MAX))
    }

    fn value_at(&self, series: &Series, at: u64) -> Option<f64> {
        let begin = at.saturating_sub(self.window_of(series));
        let up_to = |seconds: u64| series.points.partition_point(|point| point.seconds <= seconds);
        let window = series.points.get(up_to(begin)..up_to(at))?;
        match self.function {
            None => window.last().map(|point| point.value),
            Some(function) => function.apply(window),
        }
    }

    /// # Errors
    /// There is no such time, or too much is asked for.
    pub(crate) fn check(&self) -> Result<(), String> {
        if self.start_seconds > self.end_seconds {
            return Err("start must not be behind end".to_owned());
        }
        let span = (self.end_seconds - self.start_seconds).min(MONTH_SECONDS);
        if span / self.step_seconds > VALUES_MAX {
            return Err(format!("an answer has at most {VALUES_MAX} values; say a longer step"));
        }
        Ok(())
    }
}

/// Seconds since 1970, or, below 0, from now.
fn moment(value: &str, now_seconds: u64) -> Result<u64, String> {
    let why = || "The value must be an integer: seconds since 1970, or from now below 0".to_owned();
    let seconds: i64 = value.parse().map_err(|_| why())?;
    Ok(match u64::try_from(seconds) {
        Ok(seconds) => seconds,
        Err(_) => now_seconds.saturating_sub(seconds.unsigned_abs()),
    })
}

fn positive(value: &str) -> Result<u64, String> {
    let seconds = value.parse().ok().filter(|seconds| (1..=u64::from(u32::MAX)).contains(seconds));
    seconds.ok_or_else(|| "The value must be a positive integer: seconds".to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::stats_history::SeriesName;

    fn series(values: &[(u64, f64)]) -> Series {
        let name = SeriesName { name: "kv_ops".to_owned(), labels: Vec::new() };
        let points =
            values.iter().map(|(seconds, value)| Point { seconds: *seconds, value: *value });
        Series { name, interval_seconds: 10, points: points.collect() }
    }

    fn values_of(query: &RangeQuery, series: &Series) -> Vec<Point> {
        query.values_of(series, &mut AnswerRoom::default()).unwrap()
    }

    #[test]
    fn an_answer_has_a_limit_of_values_and_of_samples_whatever_many_figures_are_in_it() {
        let minutes: Vec<_> = (0..43_200).map(|minute| (minute * 60, 1.0)).collect();
        let month = Series { interval_seconds: 60, ..series(&minutes) };
        let query = |step_seconds, window_seconds, function| RangeQuery {
            start_seconds: 0,
            step_seconds,
            window_seconds,
            function,
            ..RangeQuery::until(MONTH_SECONDS)
        };
        let answered = |query: &RangeQuery| {
            let mut room = AnswerRoom::default();
            (0..1_000).take_while(|_| query.values_of(&month, &mut room).is_ok()).count()
        };
        assert_eq!(answered(&query(3_600, 60, Some(Function::Rate))), 200_000 / 721);
        assert_eq!(
            answered(&query(24 * 3_600, 24 * 3_600, Some(Function::Average))),
            50_000_000 / 87_871
        );
        assert_eq!(answered(&query(240, MONTH_SECONDS, Some(Function::Average))), 0);
        // The last value counts for a hundred years.
        let years = RangeQuery {
            end_seconds: u64::MAX,
            ..query(3_600, u64::from(u32::MAX), Some(Function::Least))
        };
        assert_eq!((years.check(), answered(&years)), (Ok(()), 0));
    }

    #[test]
    fn functions_are_those_of_prometheus_over_the_window() {
        // The counter began anew between the third and the fourth sample.
        let counter = series(&[(100, 10.0), (110, 30.0), (120, 40.0), (130, 5.0)]);
        for (name, expected) in [
            ("rate", 35.0 / 30.0),
            ("irate", 0.5),
            ("increase", 35.0),
            ("avg_over_time", 21.25),
            ("min_over_time", 5.0),
            ("max_over_time", 40.0),
            ("delta", -5.0),
            ("idelta", -35.0),
            // At 115 seconds and 21.25 in the middle, products of both distances sum up to -25.
            ("deriv", -25.0 / 500.0),
            ("sum", 5.0),
        ] {
            let mut query = RangeQuery { start_seconds: 130, ..RangeQuery::until(130) };
            query.take_function(name).unwrap();
            let values = values_of(&query, &counter);
            assert_eq!(values, [Point { seconds: 130, value: expected }], "{name}");
        }
        for function in [Function::Rate, Function::Derivative] {
            let query = RangeQuery { function: Some(function), ..RangeQuery::until(100) };
            assert!(values_of(&query, &counter).is_empty(), "one sample has no {function:?}");
        }
    }

    #[test]
    fn a_slope_is_exact_long_after_1970() {
        let seconds = |at: u64| 1_800_000_000 + at;
        let gauge = series(&[(seconds(0), 7.5), (seconds(10), 8.0), (seconds(20), 8.5)]);
        let function = Some(Function::Derivative);
        let query = RangeQuery { function, ..RangeQuery::until(seconds(20)) };
        assert_eq!(values_of(&query, &gauge).last().map(|point| point.value), Some(0.05));
    }

    #[test]
    fn behind_a_function_there_are_only_those_of_all_figures() {
        for (names, why) in [
            (&["rate", "sum", "max"][..], None),
            (&["avg"], None),
            (&["sum", "rate"], Some("behind a function")),
            (&["rate", "deriv"], Some("behind a function")),
            (&["median"], Some("one of: rate")),
            (&["p100"], Some("one of: rate")),
            (&["p99"], Some("percentiles")),
        ] {
            let mut query = RangeQuery::until(1_000);
            let taken = names.iter().try_for_each(|name| query.take_function(name));
            match why {
                None => assert_eq!(taken, Ok(()), "{names:?}"),
                Some(why) => assert!(taken.unwrap_err().contains(why), "{names:?}"),
            }
        }
    }

    #[test]
    fn values_stand_at_steps_where_there_are_any() {
        let gauge = series(&[(1_000, 1.0), (1_010, 2.0), (1_020, 3.0)]);
        let query = |start_seconds, end_seconds, step_seconds| RangeQuery {
            start_seconds,
            end_seconds,
            step_seconds,
            ..RangeQuery::until(end_seconds)
        };
        let at = |query: RangeQuery| -> Vec<(u64, f64)> {
            values_of(&query, &gauge).iter().map(|point| (point.seconds, point.value)).collect()
        };
        assert_eq!(at(query(1_000, 1_020, 10)), [(1_000, 1.0), (1_010, 2.0), (1_020, 3.0)]);
        assert_eq!(at(query(0, 1_025, 25)), [(1_000, 1.0), (1_025, 3.0)]);
        assert_eq!(at(query(1_070, u64::MAX, 1)).len(), 10, "as long as a value counts");
        assert!(at(query(0, 900, 1)).is_empty());
        assert!(at(query(0, u64::MAX, 1)).len() < 100, "only what there was is looked at");
    }

    #[test]
    fn where_figures_are_far_apart_a_rate_still_has_two_of_them() {
        let far = Series { interval_seconds: 60, ..series(&[(600, 60.0), (660, 120.0)]) };
        let query = RangeQuery {
            start_seconds: 660,
            function: Some(Function::Rate),
            ..RangeQuery::until(660)
        };
        assert_eq!(values_of(&query, &far), [Point { seconds: 660, value: 1.0 }]);
        assert_eq!(query.needed_since_seconds(), 540);
    }

    #[test]
    fn parameters_are_read_or_refused_by_their_name() {
        for (name, value, is_right) in [
            ("start", "-60", true),
            ("start", "1700000000", true),
            ("start", "1.5", false),
            ("end", "", false),
            ("step", "0", false),
            ("step", "60", true),
            ("timeWindow", "-1", false),
            ("nodesAggregation", "sum", true),
            ("nodesAggregation", "p99", false),
        ] {
            let taken = RangeQuery::until(1_000).take(name, value, 1_000);
            assert_eq!(taken.is_ok(), is_right, "{name} {value}");
        }
        let mut query = RangeQuery::until(1_000);
        assert_eq!(query.take("bucket", "b", 1_000), Ok(false));
        assert_eq!(query.take("start", "-2000", 1_000), Ok(true));
        assert_eq!(query.start_seconds, 0);
        assert_eq!(query.check(), Ok(()));
        let backwards = RangeQuery { start_seconds: 2_000, ..RangeQuery::until(1_000) };
        assert!(backwards.check().is_err());
        for (step_seconds, is_right) in [(1, false), (235, false), (236, true), (3600, true)] {
            let all = RangeQuery { start_seconds: 0, step_seconds, ..RangeQuery::until(1 << 31) };
            assert_eq!(all.check().is_ok(), is_right, "a month by {step_seconds} s");
        }
    }
}
