// A connection object of libcouchbase, one request after the other.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <stdexcept>
#include <string>
#include <vector>

#include <libcouchbase/couchbase.h>

// Says what should have held when it does not.
struct Failure : std::runtime_error {
  using std::runtime_error::runtime_error;
};

// Where a document is; names are empty in the default collection.
struct Key {
  std::string id, scope = {}, collection = {};
};

// What a write may be told beside its value.
struct Options {
  uint64_t cas = 0;
  uint32_t expiry = 0;
  lcb_DURABILITY_LEVEL level = LCB_DURABILITYLEVEL_NONE;
  int persist_to = 0, replicate_to = 0;
  bool is_expiry_preserved = false;
};

// The result of one path.
struct Part {
  lcb_STATUS status;
  std::string value;
};

// What a request ended with; fields that it does not have are as they began.
struct Answer {
  lcb_STATUS status = LCB_ERR_GENERIC;
  std::string value = {};
  uint64_t cas = 0, number = 0;
  bool exists = false;
  uint16_t http_status = 0;
  lcb_MUTATION_TOKEN token = {};
  std::vector<Part> parts = {};
  // Of all copies, when several were asked for.
  std::vector<Answer> copies = {};
};

class Client {
public:
  // Connects; `status` says whether that succeeded. `options` are those of a connection string.
  Client(const std::string &address, const std::string &bucket, const std::string &user,
         const std::string &password, const std::string &options = {});
  ~Client();
  Client(const Client &) = delete;
  Client &operator=(const Client &) = delete;

  lcb_STATUS status() const { return status_; }

  // The node that has the active copy of a key, by its place in the map.
  int node_of(const Key &key);

  Answer get(const Key &key);
  Answer get_and_lock(const Key &key, uint32_t seconds);
  Answer get_and_touch(const Key &key, uint32_t expiry);
  Answer copies(const Key &key);
  Answer any_replica(const Key &key);
  Answer exists(const Key &key);
  Answer store(lcb_STORE_OPERATION operation, const Key &key, const std::string &value,
               const Options &options = {});
  Answer upsert(const Key &key, const std::string &value, const Options &options = {});
  Answer remove(const Key &key, const Options &options = {});
  // Without `initial` a missing counter is an error.
  Answer count(const Key &key, int64_t delta, const uint64_t *initial = nullptr,
               const Options &options = {});
  Answer touch(const Key &key, uint32_t expiry);
  Answer unlock(const Key &key, uint64_t cas);
  // `specify` fills in as many paths as are said.
  Answer paths(const Key &key, size_t count, const std::function<void(lcb_SUBDOCSPECS *)> &specify,
               lcb_SUBDOC_STORE_SEMANTICS semantics = LCB_SUBDOC_STORE_REPLACE,
               const Options &options = {});
  Answer ping();
  Answer rest(lcb_HTTP_METHOD method, const std::string &path, const std::string &body = {});
  // Stores these documents at once; the number of them that are stored.
  size_t upsert_all(const std::map<std::string, std::string> &documents);

private:
  template <typename Complete>
  Answer get(const Key &key, Complete &&complete);
  template <typename Schedule>
  Answer wait(Schedule &&schedule);

  lcb_INSTANCE *instance_ = nullptr;
  lcb_STATUS status_ = LCB_ERR_GENERIC;
};
