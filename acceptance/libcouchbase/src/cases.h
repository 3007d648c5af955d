// Cases, and what they ask of answers.
#pragma once

#include <chrono>
#include <functional>
#include <string>
#include <thread>
#include <vector>

#include "client.h"

// What cases share: a client that is connected, and keys that no other case uses.
class Run {
public:
  explicit Run(Client &shared) : client(shared) {}

  Client &client;

  Key key() { return {"key-" + std::to_string(++names_)}; }
  // A new document.
  Key stored(const std::string &value, const Options &options = {});
  // Asks whoever runs the nodes, and waits until it is done.
  void order(const std::string &line);
  bool is_gone(const Key &key);
  void expect_value(const Key &key, const std::string &wanted);

private:
  int names_ = 0;
};

struct Case {
  std::string name;
  std::function<void(Run &)> run;
};

using Cases = std::vector<Case>;

Cases connecting_cases();
Cases document_cases();
Cases lock_and_expiry_cases();
Cases number_and_byte_cases();
Cases value_cases();
Cases collection_cases();
Cases path_cases();
Cases encryption_cases();
Cases durability_cases();
Cases two_node_cases();

// The levels of durability that are more than none.
extern const std::vector<lcb_DURABILITY_LEVEL> LEVELS;

std::string variable(const char *name);
void expect(bool holds, const std::string &sentence);
void expect_ok(const Answer &answer, const std::string &what);
void expect_status(const Answer &answer, std::vector<lcb_STATUS> wanted, const std::string &what);
// Stores and reads with the client of a connection string's options.
void exchange_behind_tls(const std::string &options, bool has_password, const std::string &name,
                         const std::vector<size_t> &sizes);
void wait_until(const std::function<bool()> &question, std::chrono::seconds limit,
                const std::string &what);

template <typename Value>
void expect_equal(const Value &got, const Value &wanted, const std::string &what) {
  expect(got == wanted, what + " is another one");
}
