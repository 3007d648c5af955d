// Cases: durable writes, and what is there after a restart.
#include "cases.h"

namespace {

Options durably(lcb_DURABILITY_LEVEL level, uint64_t cas = 0) {
  Options options;
  options.level = level;
  options.cas = cas;
  return options;
}

// Takes a document from its insertion to its removal.
void durable_life(Run &run, lcb_DURABILITY_LEVEL level) {
  Key key = run.key(), counter = run.key();
  expect_ok(run.client.store(LCB_STORE_INSERT, key, "0", durably(level)), "insertion");
  Answer stored = run.client.upsert(key, "1", durably(level));
  expect_ok(stored, "store");
  Options present = durably(level, stored.cas);
  expect_ok(run.client.store(LCB_STORE_REPLACE, key, "2", present), "replace");
  run.expect_value(key, "2");
  expect_status(run.client.store(LCB_STORE_REPLACE, key, "3", present), {LCB_ERR_CAS_MISMATCH},
                "replace of an old version");
  uint64_t seven = 7;
  Answer counted = run.client.count(counter, 1, &seven, durably(level));
  expect_ok(counted, "counter");
  expect_equal<uint64_t>(counted.number, 7, "the counter");
  expect_ok(run.client.remove(key, durably(level)), "removal");
  expect(run.is_gone(key), "it is removed");
}

void restart_keeps(Run &run) {
  std::map<std::string, std::string> documents;
  for (int number = 0; number < 200; number++) documents[run.key().id] = std::to_string(number);
  expect_equal<size_t>(run.client.upsert_all(documents), 200, "number of stores");
  Key removed = run.stored("1"), counter = run.stored("41");
  expect_ok(run.client.remove(removed), "removal");
  run.order("NODE restart");
  wait_until([&] { return run.is_gone(removed); }, std::chrono::seconds(20),
             "the same client works, and a removed document stays removed");
  for (const auto &[id, value] : documents) run.expect_value({id}, value);
  expect_equal<uint64_t>(run.client.count(counter, 1).number, 42, "the counter");
}

void same_branch(Run &run) {
  Key key = run.key();
  Answer before = run.client.upsert(key, "1"), after;
  expect_ok(before, "store");
  run.order("NODE restart");
  wait_until([&] { return (after = run.client.upsert(key, "2")).status == LCB_SUCCESS; },
             std::chrono::seconds(20), "the same client works");
  expect(after.cas > before.cas, "the CAS grows");
  expect(after.token.uuid_ == before.token.uuid_, "one uuid");
  expect(after.token.seqno_ > before.token.seqno_, "seqnos go on");
}

} // namespace

Cases durability_cases() {
  return {
      {"durable-writes-are-committed",
       [](Run &run) {
         for (lcb_DURABILITY_LEVEL level : LEVELS) durable_life(run, level);
       }},
      {"persist-to-active",
       [](Run &run) {
         Options observed;
         observed.persist_to = 1;
         Key key = run.stored("1", observed);
         expect_ok(run.client.store(LCB_STORE_REPLACE, key, "2", observed), "replace");
         run.expect_value(key, "2");
       }},
      {"restart-keeps-everything", restart_keeps},
      {"restart-goes-on-in-the-same-branch", same_branch},
  };
}
