// Drives a node, or a cluster, with libcouchbase, unmodified, and prints a line a case.
#include <algorithm>
#include <cstdio>
#include <iostream>

#include "cases.h"

namespace {

Cases all_of_one_node() {
  Cases all;
  for (const Cases &some :
       {connecting_cases(), document_cases(), lock_and_expiry_cases(), number_and_byte_cases(),
        value_cases(), collection_cases(), path_cases(), encryption_cases(), durability_cases()}) {
    all.insert(all.end(), some.begin(), some.end());
  }
  return all;
}

std::string one_line(std::string text) {
  std::replace(text.begin(), text.end(), '\n', ' ');
  return text.substr(0, 400);
}

bool run_one(Run &run, const Case &chosen) {
  auto began = std::chrono::steady_clock::now();
  try {
    chosen.run(run);
  } catch (const std::exception &error) {
    std::cout << "CASE " << chosen.name << " FAIL " << one_line(error.what()) << std::endl;
    return false;
  }
  std::chrono::duration<double> took = std::chrono::steady_clock::now() - began;
  char seconds[32] = "";
  if (took.count() >= 1) std::snprintf(seconds, sizeof seconds, " (%.1f s)", took.count());
  std::cout << "CASE " << chosen.name << " ok" << seconds << std::endl;
  return true;
}

} // namespace

int main(int count, char **arguments) {
  std::vector<std::string> chosen(arguments + 2, arguments + count);
  Client client(variable("SETTEE_CONNECT"), "default", variable("SETTEE_USER"),
                variable("SETTEE_PASSWORD"));
  if (client.status() != LCB_SUCCESS) {
    std::cout << "CASE connect FAIL " << lcb_strerror_short(client.status()) << std::endl;
    return 1;
  }
  Run run(client);
  bool is_good = true;
  for (const Case &each : std::string(arguments[1]) == "cluster" ? two_node_cases()
                                                                 : all_of_one_node()) {
    bool is_chosen = chosen.empty() ||
                     std::find(chosen.begin(), chosen.end(), each.name) != chosen.end();
    if (is_chosen) is_good = run_one(run, each) && is_good;
  }
  return is_good ? 0 : 1;
}
