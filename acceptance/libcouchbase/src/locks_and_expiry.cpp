// Cases: locks, and documents that expire.
#include "cases.h"

namespace {

using std::chrono::seconds;

// The library repeats what a lock refuses until its time is over.
const std::vector<lcb_STATUS> LOCKED = {LCB_ERR_DOCUMENT_LOCKED, LCB_ERR_TIMEOUT,
                                        LCB_ERR_TEMPORARY_FAILURE};

struct Locked {
  Key key;
  uint64_t cas;
};

Locked locked(Run &run) {
  Key key = run.stored("1");
  Answer answer = run.client.get_and_lock(key, 15);
  expect_ok(answer, "read and lock");
  return {key, answer.cas};
}

Options version(uint64_t cas) {
  Options options;
  options.cas = cas;
  return options;
}

Options lifetime(uint32_t count) {
  Options options;
  options.expiry = count;
  return options;
}

void wait_until_gone(Run &run, const Key &key) {
  wait_until([&] { return run.is_gone(key); }, seconds(4), key.id + " is over");
}

void expect_lasting(Run &run, const Key &key) {
  std::this_thread::sleep_for(std::chrono::milliseconds(2500));
  expect(!run.is_gone(key), key.id + " is there");
}

Cases locks() {
  return {
      {"get-and-lock",
       [](Run &run) {
         locked(run);
         expect_status(run.client.get_and_lock(run.key(), 15), {LCB_ERR_DOCUMENT_NOT_FOUND},
                       "a missing one");
       }},
      {"locked-write-is-refused",
       [](Run &run) {
         Key key = locked(run).key;
         expect_status(run.client.upsert(key, "2"), LOCKED, "store");
         run.expect_value(key, "1");
       }},
      {"locked-twice-is-refused",
       [](Run &run) {
         expect_status(run.client.get_and_lock(locked(run).key, 15), LOCKED, "second lock");
       }},
      {"locked-is-readable",
       [](Run &run) {
         Locked made = locked(run);
         expect(run.client.get(made.key).cas != made.cas, "a read does not give the CAS away");
       }},
      {"write-with-lock-cas-unlocks",
       [](Run &run) {
         Locked made = locked(run);
         Options own = version(made.cas);
         expect_ok(run.client.store(LCB_STORE_REPLACE, made.key, "2", own), "replace");
         expect_ok(run.client.upsert(made.key, "3"), "store of everybody");
       }},
      {"unlock",
       [](Run &run) {
         Locked made = locked(run);
         expect_ok(run.client.unlock(made.key, made.cas), "unlock");
         expect_ok(run.client.upsert(made.key, "2"), "store of everybody");
       }},
      {"unlock-missing",
       [](Run &run) {
         expect_status(run.client.unlock(run.key(), 1), {LCB_ERR_DOCUMENT_NOT_FOUND}, "unlock");
       }},
  };
}

Cases expiry() {
  return {
      {"touch",
       [](Run &run) {
         Key key = run.stored("1");
         expect_ok(run.client.touch(key, 1), "touch");
         wait_until_gone(run, key);
       }},
      {"touch-missing",
       [](Run &run) {
         expect_status(run.client.touch(run.key(), 1), {LCB_ERR_DOCUMENT_NOT_FOUND}, "touch");
       }},
      {"get-and-touch",
       [](Run &run) {
         Key key = run.stored("1");
         Answer read = run.client.get_and_touch(key, 1);
         expect_ok(read, "read and touch");
         expect_equal<std::string>(read.value, "1", "the value");
         wait_until_gone(run, key);
       }},
      {"expiry",
       [](Run &run) {
         Key key = run.stored("1", lifetime(2));
         expect(!run.is_gone(key), "it is there at first");
         wait_until_gone(run, key);
       }},
      {"expiry-is-removed-by-upsert",
       [](Run &run) {
         Key key = run.stored("1", lifetime(2));
         expect_ok(run.client.upsert(key, "2"), "store");
         expect_lasting(run, key);
       }},
      {"preserve-expiry",
       [](Run &run) {
         Key key = run.stored("1", lifetime(2));
         Options kept;
         kept.is_expiry_preserved = true;
         expect_ok(run.client.upsert(key, "2", kept), "store");
         wait_until_gone(run, key);
       }},
      {"expired-can-be-inserted",
       [](Run &run) {
         Key key = run.stored("1", lifetime(1));
         wait_until_gone(run, key);
         expect_ok(run.client.store(LCB_STORE_INSERT, key, "2"), "insertion");
       }},
  };
}

} // namespace

Cases lock_and_expiry_cases() {
  Cases all = locks(), others = expiry();
  all.insert(all.end(), others.begin(), others.end());
  return all;
}
