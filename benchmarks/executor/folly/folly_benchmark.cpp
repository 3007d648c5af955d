// Real Folly in the benchmarks of the executor: one measurement, one line of JSON.
//
// folly_benchmark OneShotScheduleRun <threads> 0 <seconds> yield|spin
// folly_benchmark TimeoutAddCancel <threads> <timeouts> <seconds> none
//
// The same harness as for all other pools: fixed time, one common start, wall time to the end of
// the last thread. C++17.

#include <sys/resource.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cinttypes>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <functional>
#include <future>
#include <memory>
#include <random>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include <folly/executors/CPUThreadPoolExecutor.h>
#include <folly/executors/IOThreadPoolExecutor.h>
#include <folly/executors/thread_factory/NamedThreadFactory.h>
#include <folly/init/Init.h>
#include <folly/io/async/EventBase.h>
#include <folly/io/async/HHWheelTimer.h>
#include <folly/synchronization/Baton.h>

namespace {

using Clock = std::chrono::steady_clock;

// How long a waiter that yields does so before it parks.
constexpr std::chrono::microseconds kYield{100};
constexpr int kYieldsPerClockRead = 4;
constexpr int kDelayMillisMin = 10000;
constexpr int kDelayMillisMax = 30000;

struct Arguments {
    std::string benchmark;
    size_t threads;
    size_t items;
    std::chrono::duration<double> duration;
    bool yields;
};

struct Usage {
    int64_t cpuNanos;
    int64_t voluntarySwitches;
};

Usage usageNow() {
    rusage usage{};
    if (getrusage(RUSAGE_SELF, &usage) != 0) {
        std::perror("getrusage");
        std::exit(1);
    }
    const auto nanos = [](const timeval& time) {
        return int64_t{time.tv_sec} * 1000000000 + int64_t{time.tv_usec} * 1000;
    };
    return {nanos(usage.ru_utime) + nanos(usage.ru_stime), usage.ru_nvcsw};
}

// Calls `load(index, stop)` on each thread; it returns how many operations it did.
void measure(const Arguments& arguments,
             const std::function<uint64_t(size_t, const std::atomic<bool>&)>& load) {
    std::atomic<bool> stop{false};
    std::atomic<size_t> ready{0};
    std::atomic<size_t> done{0};
    std::promise<void> allReady;
    std::promise<void> allDone;
    std::promise<void> start;
    std::promise<void> end;
    // Many threads wait for these; a baton has room for one.
    const std::shared_future<void> started = start.get_future().share();
    const std::shared_future<void> ended = end.get_future().share();
    std::vector<uint64_t> operations(arguments.threads);
    std::vector<Clock::time_point> ends(arguments.threads);
    std::vector<std::thread> threads;
    for (size_t index = 0; index < arguments.threads; ++index) {
        threads.emplace_back([&, started, ended, index] {
            if (ready.fetch_add(1) + 1 == arguments.threads) {
                allReady.set_value();
            }
            started.wait();
            operations[index] = load(index, stop);
            ends[index] = Clock::now();
            if (done.fetch_add(1) + 1 == arguments.threads) {
                allDone.set_value();
            }
            ended.wait();
        });
    }
    allReady.get_future().wait();
    const Usage before = usageNow();
    const auto startTime = Clock::now();
    start.set_value();
    std::this_thread::sleep_for(arguments.duration);
    stop.store(true, std::memory_order_relaxed);
    allDone.get_future().wait();
    const Usage after = usageNow();
    end.set_value();
    for (auto& thread : threads) {
        thread.join();
    }
    uint64_t total = 0;
    for (const uint64_t count : operations) {
        total += count;
    }
    const auto wall = *std::max_element(ends.begin(), ends.end()) - startTime;
    const int64_t wallNanos =
        std::chrono::duration_cast<std::chrono::nanoseconds>(wall).count();
    std::printf("{\"operations\":%" PRIu64 ",\"wall_ns\":%" PRId64 ",\"cpu_ns\":%" PRId64
                ",\"voluntary_switches\":%" PRId64 "}\n",
                total, wallNanos, after.cpuNanos - before.cpuNanos,
                after.voluntarySwitches - before.voluntarySwitches);
}

void wait(folly::Baton<>& baton, bool yields) {
    if (yields) {
        const auto until = Clock::now() + kYield;
        do {
            for (int count = 0; count < kYieldsPerClockRead && !baton.ready(); ++count) {
                std::this_thread::yield();
            }
        } while (!baton.ready() && Clock::now() < until);
    }
    // Folly's own way: spin for 2 us, then park.
    baton.wait();
}

void oneShot(const Arguments& arguments) {
    // As many threads at the least as at the most: none times out.
    folly::CPUThreadPoolExecutor pool(
        std::pair<size_t, size_t>(arguments.threads, arguments.threads),
        std::make_shared<folly::NamedThreadFactory>("NonIoPool"));
    measure(arguments, [&](size_t, const std::atomic<bool>& stop) {
        folly::Baton<> baton;
        std::atomic<uint64_t> runs{0};
        uint64_t operations = 0;
        do {
            pool.add([&baton, &runs] {
                runs.fetch_add(1, std::memory_order_relaxed);
                baton.post();
            });
            wait(baton, arguments.yields);
            baton.reset();
            ++operations;
            if (runs.load(std::memory_order_relaxed) != operations) {
                std::fprintf(stderr, "a task runs once\n");
                std::abort();
            }
        } while (!stop.load(std::memory_order_relaxed));
        return operations;
    });
    pool.join();
}

struct Timeout : folly::HHWheelTimer::Callback {
    std::atomic<bool> hasFired{false};

    void timeoutExpired() noexcept override { hasFired.store(true); }
    void callbackCanceled() noexcept override {}
};

// Thread t of T arms the timers t, t + T, t + 2 T and so on. Calls do not wait, but the last one of
// each thread does, so that the whole backlog is inside of the measured time.
void timeoutAddCancel(const Arguments& arguments) {
    std::vector<std::unique_ptr<Timeout>> timeouts;
    for (size_t index = 0; index < arguments.items; ++index) {
        timeouts.push_back(std::make_unique<Timeout>());
    }
    folly::IOThreadPoolExecutor pool(1);
    measure(arguments, [&](size_t thread, const std::atomic<bool>& stop) {
        std::mt19937_64 random(thread);
        std::uniform_int_distribution<int> delays(kDelayMillisMin, kDelayMillisMax);
        uint64_t operations = 0;
        size_t index = thread;
        for (;;) {
            folly::EventBase* base = pool.getEventBase();
            Timeout* timeout = timeouts[index].get();
            const std::chrono::milliseconds delay{delays(random)};
            const auto arm = [base, timeout, delay] {
                base->timer().scheduleTimeout(timeout, delay);
            };
            ++operations;
            if (stop.load(std::memory_order_relaxed)) {
                base->runInEventBaseThreadAndWait(arm);
                return operations;
            }
            base->runInEventBaseThread(arm);
            index += arguments.threads;
            if (index >= timeouts.size()) {
                index = thread;
            }
        }
    });
    pool.getEventBase()->runInEventBaseThreadAndWait([&] {
        for (auto& timeout : timeouts) {
            timeout->cancelTimeout();
            if (timeout->hasFired.load()) {
                std::fprintf(stderr, "a timer fired long before its time\n");
                std::abort();
            }
        }
    });
    pool.join();
}

} // namespace

int main(int argc, char** argv) {
    folly::Init init(&argc, &argv);
    if (argc != 6) {
        std::fprintf(stderr, "usage: %s <benchmark> <threads> <items> <seconds> <waiter>\n",
                     argv[0]);
        return 2;
    }
    const Arguments arguments{argv[1], std::stoul(argv[2]), std::stoul(argv[3]),
                              std::chrono::duration<double>(std::stod(argv[4])),
                              std::string(argv[5]) == "yield"};
    if (arguments.threads == 0) {
        std::fprintf(stderr, "at least one thread\n");
        return 2;
    }
    if (arguments.benchmark == "OneShotScheduleRun") {
        oneShot(arguments);
    } else if (arguments.benchmark == "TimeoutAddCancel" &&
               arguments.items >= arguments.threads) {
        timeoutAddCancel(arguments);
    } else {
        std::fprintf(stderr, "no such benchmark: %s\n", argv[1]);
        return 2;
    }
    return 0;
}
