// What cases ask of answers.
#include "cases.h"

#include <algorithm>
#include <cstdlib>
#include <iostream>

const std::vector<lcb_DURABILITY_LEVEL> LEVELS = {
    LCB_DURABILITYLEVEL_MAJORITY, LCB_DURABILITYLEVEL_MAJORITY_AND_PERSIST_TO_ACTIVE,
    LCB_DURABILITYLEVEL_PERSIST_TO_MAJORITY};

std::string variable(const char *name) {
  const char *value = std::getenv(name);
  if (value == nullptr) throw Failure(std::string("the variable is missing: ") + name);
  return value;
}

void expect(bool holds, const std::string &sentence) {
  if (!holds) throw Failure(sentence);
}

void expect_status(const Answer &answer, std::vector<lcb_STATUS> wanted, const std::string &what) {
  bool is_wanted = std::find(wanted.begin(), wanted.end(), answer.status) != wanted.end();
  expect(is_wanted, what + ": " + lcb_strerror_short(answer.status));
}

void expect_ok(const Answer &answer, const std::string &what) {
  expect_status(answer, {LCB_SUCCESS}, what);
}

void wait_until(const std::function<bool()> &question, std::chrono::seconds limit,
                const std::string &what) {
  auto deadline = std::chrono::steady_clock::now() + limit;
  // An answer that comes late says nothing: what counts is when it was asked for.
  for (auto asked = std::chrono::steady_clock::now(); !question();
       asked = std::chrono::steady_clock::now()) {
    if (asked > deadline) throw Failure("not in time: " + what);
    std::this_thread::sleep_for(std::chrono::milliseconds(20));
  }
}

Key Run::stored(const std::string &value, const Options &options) {
  Key made = key();
  expect_ok(client.upsert(made, value, options), "store of a new document");
  return made;
}

void Run::order(const std::string &line) {
  std::cout << line << std::endl;
  std::string answer;
  std::getline(std::cin, answer);
  expect(answer == "NODE ready" || answer == "CLUSTER done", line + " was not done");
}

bool Run::is_gone(const Key &key) { return client.get(key).status == LCB_ERR_DOCUMENT_NOT_FOUND; }

void Run::expect_value(const Key &key, const std::string &wanted) {
  Answer read = client.get(key);
  expect_ok(read, "read of " + key.id);
  expect(read.value == wanted,
         key.id + ": expected " + wanted.substr(0, 100) + ", got " + read.value.substr(0, 100));
}
