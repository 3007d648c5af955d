// Cases: two nodes, one replica.
#include "cases.h"

namespace {

using std::chrono::seconds;

constexpr int COUNT = 40;
const seconds LIMIT{20};

std::vector<Key> keys(const std::string &name) {
  std::vector<Key> made;
  for (int number = 0; number < COUNT; number++) made.push_back({name + std::to_string(number)});
  return made;
}

Options durably(lcb_DURABILITY_LEVEL level) {
  Options options;
  options.level = level;
  return options;
}

void durable_writes(Run &run) {
  for (lcb_DURABILITY_LEVEL level : LEVELS) {
    for (const Key &key : keys("durable-" + std::to_string(level) + "-")) {
      expect_ok(run.client.store(LCB_STORE_INSERT, key, "0", durably(level)), "insertion");
      expect_ok(run.client.upsert(key, "1", durably(level)), "store");
      run.expect_value(key, "1");
      expect_ok(run.client.remove(key, durably(level)), "removal");
      expect(run.is_gone(key), "it is removed");
    }
  }
  run.order("CLUSTER replicated");
}

void replicas(Run &run) {
  for (const Key &key : keys("replica-")) expect_ok(run.client.upsert(key, key.id), "store");
  run.order("CLUSTER replicated");
  for (const Key &key : keys("replica-")) {
    Answer all = run.client.copies(key), any = run.client.any_replica(key);
    expect(!all.copies.empty(), "there is a copy");
    for (const Answer &copy : all.copies) expect(copy.value == key.id, "a copy's value");
    expect_ok(any, "any copy");
    expect(any.copies.at(0).value == key.id, "value of any copy");
  }
  expect_status(run.client.any_replica({"absent"}),
                {LCB_ERR_DOCUMENT_NOT_FOUND, LCB_ERR_DOCUMENT_UNRETRIEVABLE}, "no copy");
}

void observed(Run &run) {
  Options options;
  options.persist_to = 2;
  options.replicate_to = 1;
  for (const Key &key : keys("observed-")) {
    expect_ok(run.client.upsert(key, "1", options), "store that is replicated and persisted");
  }
}

void stopped_replica(Run &run) {
  for (const Key &key : keys("stopped-")) expect_ok(run.client.upsert(key, "1"), "store");
  run.order("CLUSTER pause 1");
  std::vector<Key> of_first;
  for (const Key &key : keys("stopped-")) {
    if (run.client.node_of(key) == 0) of_first.push_back(key);
  }
  expect(of_first.size() >= 2, "keys of the first node");
  const Key &durable = of_first[0], &ordinary = of_first[1];
  expect_status(run.client.upsert(durable, "2", durably(LCB_DURABILITYLEVEL_MAJORITY)),
                {LCB_ERR_DURABILITY_AMBIGUOUS, LCB_ERR_TIMEOUT}, "durable store");
  run.expect_value(durable, "1");
  expect_ok(run.client.upsert(ordinary, "3"), "ordinary store");
  run.order("CLUSTER resume 1");
  auto goes_on = [&] {
    Options majority = durably(LCB_DURABILITYLEVEL_MAJORITY);
    return run.client.upsert(durable, "4", majority).status == LCB_SUCCESS;
  };
  wait_until(goes_on, LIMIT, "durable writes go on");
  run.expect_value(durable, "4");
}

void failover(Run &run) {
  Options persisted = durably(LCB_DURABILITYLEVEL_PERSIST_TO_MAJORITY);
  for (const Key &key : keys("failover-")) {
    expect_ok(run.client.upsert(key, "1", persisted), "durable store");
  }
  run.order("CLUSTER kill 0");
  run.order("CLUSTER failover 0");
  for (const Key &key : keys("failover-")) {
    auto is_read = [&] { return run.client.get(key).status == LCB_SUCCESS; };
    wait_until(is_read, LIMIT, key.id + " is read");
    run.expect_value(key, "1");
    expect_ok(run.client.upsert(key, "2"), "store");
  }
  // One of two copies is missing: no majority can be reached.
  expect_status(run.client.upsert({"failover-0"}, "3", persisted), {LCB_ERR_DURABILITY_IMPOSSIBLE},
                "durable store");
  run.order("CLUSTER recover 0");
  run.order("CLUSTER replicated");
  auto goes_on = [&] {
    return run.client.upsert({"failover-0"}, "2", persisted).status == LCB_SUCCESS;
  };
  wait_until(goes_on, LIMIT, "durable writes go on");
  for (const Key &key : keys("failover-")) run.expect_value(key, "2");
}

} // namespace

Cases two_node_cases() {
  return {
      {"tls-two-nodes",
       [](Run &) {
         std::vector<size_t> sizes;
         for (size_t size = 0; size < COUNT; size++) sizes.push_back(size);
         exchange_behind_tls("truststorepath=" + variable("SETTEE_AUTHORITY"), true, "tls", sizes);
       }},
      {"sdk-durable-writes-at-every-level", durable_writes},
      {"sdk-replicas-can-be-read", replicas},
      {"sdk-observed-writes-reach-the-replica", observed},
      {"sdk-stopped-replica-makes-durable-writes-ambiguous", stopped_replica},
      {"sdk-failover-keeps-the-sdk-working", failover},
  };
}
