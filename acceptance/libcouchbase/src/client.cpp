// Requests and their answers, as libcouchbase's C interface has them.
#include "client.h"

namespace {

std::string text(const char *bytes, size_t size) { return {bytes == nullptr ? "" : bytes, size}; }

Answer &answer_of(void *cookie) { return *static_cast<Answer *>(cookie); }

void on_get(lcb_INSTANCE *, int, const lcb_RESPGET *response) {
  void *cookie;
  lcb_respget_cookie(response, &cookie);
  Answer &answer = answer_of(cookie);
  answer.status = lcb_respget_status(response);
  if (answer.status != LCB_SUCCESS) return;
  const char *bytes;
  size_t size;
  lcb_respget_value(response, &bytes, &size);
  answer.value = text(bytes, size);
  lcb_respget_cas(response, &answer.cas);
}

void on_replica(lcb_INSTANCE *, int, const lcb_RESPGETREPLICA *response) {
  void *cookie;
  lcb_respgetreplica_cookie(response, &cookie);
  Answer &answer = answer_of(cookie), copy;
  copy.status = lcb_respgetreplica_status(response);
  // The last answer to "all copies" only says that there are no more.
  if (copy.status != LCB_SUCCESS) {
    if (answer.copies.empty()) answer.status = copy.status;
    return;
  }
  const char *bytes;
  size_t size;
  lcb_respgetreplica_value(response, &bytes, &size);
  copy.value = text(bytes, size);
  answer.status = LCB_SUCCESS;
  if (bytes != nullptr) answer.copies.push_back(copy);
}

void on_exists(lcb_INSTANCE *, int, const lcb_RESPEXISTS *response) {
  void *cookie;
  lcb_respexists_cookie(response, &cookie);
  Answer &answer = answer_of(cookie);
  answer.status = lcb_respexists_status(response);
  answer.exists = lcb_respexists_is_found(response) != 0;
}

void on_store(lcb_INSTANCE *, int, const lcb_RESPSTORE *response) {
  void *cookie;
  lcb_respstore_cookie(response, &cookie);
  Answer &answer = answer_of(cookie);
  answer.status = lcb_respstore_status(response);
  // How many of a batch are stored.
  if (answer.status == LCB_SUCCESS) answer.number++;
  lcb_respstore_cas(response, &answer.cas);
  lcb_respstore_mutation_token(response, &answer.token);
}

void on_remove(lcb_INSTANCE *, int, const lcb_RESPREMOVE *response) {
  void *cookie;
  lcb_respremove_cookie(response, &cookie);
  Answer &answer = answer_of(cookie);
  answer.status = lcb_respremove_status(response);
  lcb_respremove_cas(response, &answer.cas);
  lcb_respremove_mutation_token(response, &answer.token);
}

void on_count(lcb_INSTANCE *, int, const lcb_RESPCOUNTER *response) {
  void *cookie;
  lcb_respcounter_cookie(response, &cookie);
  Answer &answer = answer_of(cookie);
  answer.status = lcb_respcounter_status(response);
  if (answer.status == LCB_SUCCESS) lcb_respcounter_value(response, &answer.number);
}

void on_touch(lcb_INSTANCE *, int, const lcb_RESPTOUCH *response) {
  void *cookie;
  lcb_resptouch_cookie(response, &cookie);
  answer_of(cookie).status = lcb_resptouch_status(response);
}

void on_unlock(lcb_INSTANCE *, int, const lcb_RESPUNLOCK *response) {
  void *cookie;
  lcb_respunlock_cookie(response, &cookie);
  answer_of(cookie).status = lcb_respunlock_status(response);
}

void on_paths(lcb_INSTANCE *, int, const lcb_RESPSUBDOC *response) {
  void *cookie;
  lcb_respsubdoc_cookie(response, &cookie);
  Answer &answer = answer_of(cookie);
  answer.status = lcb_respsubdoc_status(response);
  lcb_respsubdoc_cas(response, &answer.cas);
  for (size_t index = 0; index < lcb_respsubdoc_result_size(response); index++) {
    const char *bytes = nullptr;
    size_t size = 0;
    lcb_respsubdoc_result_value(response, index, &bytes, &size);
    answer.parts.push_back({lcb_respsubdoc_result_status(response, index), text(bytes, size)});
  }
}

void on_ping(lcb_INSTANCE *, int, const lcb_RESPPING *response) {
  void *cookie;
  lcb_respping_cookie(response, &cookie);
  Answer &answer = answer_of(cookie);
  answer.status = lcb_respping_status(response);
  for (size_t index = 0; index < lcb_respping_result_size(response); index++) {
    if (lcb_respping_result_status(response, index) == LCB_PING_STATUS_OK) answer.number++;
  }
}

void on_rest(lcb_INSTANCE *, int, const lcb_RESPHTTP *response) {
  void *cookie;
  lcb_resphttp_cookie(response, &cookie);
  Answer &answer = answer_of(cookie);
  answer.status = lcb_resphttp_status(response);
  lcb_resphttp_http_status(response, &answer.http_status);
}

template <typename Response>
void install(lcb_INSTANCE *instance, lcb_CALLBACK_TYPE type,
             void (*function)(lcb_INSTANCE *, int, const Response *)) {
  lcb_install_callback(instance, type, reinterpret_cast<lcb_RESPCALLBACK>(function));
}

// Tells a command its document.
#define PLACE(kind, command, key)                                                                 \
  lcb_cmd##kind##_key(command, key.id.data(), key.id.size());                                     \
  if (!key.scope.empty()) {                                                                       \
    lcb_cmd##kind##_collection(command, key.scope.data(), key.scope.size(),                       \
                               key.collection.data(), key.collection.size());                     \
  }

} // namespace

Client::Client(const std::string &address, const std::string &bucket, const std::string &user,
               const std::string &password, const std::string &options) {
  std::string target = address + "/" + bucket + "?operation_timeout=5&" + options;
  lcb_CREATEOPTS *create;
  lcb_createopts_create(&create, LCB_TYPE_BUCKET);
  lcb_createopts_connstr(create, target.data(), target.size());
  if (!user.empty()) {
    lcb_createopts_credentials(create, user.data(), user.size(), password.data(), password.size());
  }
  status_ = lcb_create(&instance_, create);
  lcb_createopts_destroy(create);
  if (status_ != LCB_SUCCESS) return;
  install(instance_, LCB_CALLBACK_GET, on_get);
  install(instance_, LCB_CALLBACK_GETREPLICA, on_replica);
  install(instance_, LCB_CALLBACK_EXISTS, on_exists);
  install(instance_, LCB_CALLBACK_STORE, on_store);
  install(instance_, LCB_CALLBACK_REMOVE, on_remove);
  install(instance_, LCB_CALLBACK_COUNTER, on_count);
  install(instance_, LCB_CALLBACK_TOUCH, on_touch);
  install(instance_, LCB_CALLBACK_UNLOCK, on_unlock);
  install(instance_, LCB_CALLBACK_SDLOOKUP, on_paths);
  install(instance_, LCB_CALLBACK_SDMUTATE, on_paths);
  install(instance_, LCB_CALLBACK_PING, on_ping);
  install(instance_, LCB_CALLBACK_HTTP, on_rest);
  status_ = lcb_connect(instance_);
  if (status_ != LCB_SUCCESS) return;
  lcb_wait(instance_, LCB_WAIT_DEFAULT);
  status_ = lcb_get_bootstrap_status(instance_);
}

Client::~Client() {
  if (instance_ != nullptr) lcb_destroy(instance_);
}

template <typename Schedule>
Answer Client::wait(Schedule &&schedule) {
  Answer answer;
  lcb_STATUS scheduled = schedule(&answer);
  if (scheduled != LCB_SUCCESS) {
    answer.status = scheduled;
    return answer;
  }
  lcb_wait(instance_, LCB_WAIT_DEFAULT);
  return answer;
}

template <typename Complete>
Answer Client::get(const Key &key, Complete &&complete) {
  lcb_CMDGET *command;
  lcb_cmdget_create(&command);
  PLACE(get, command, key)
  complete(command);
  Answer answer = wait([&](Answer *to) { return lcb_get(instance_, to, command); });
  lcb_cmdget_destroy(command);
  return answer;
}

Answer Client::get(const Key &key) {
  return get(key, [](lcb_CMDGET *) {});
}

Answer Client::get_and_lock(const Key &key, uint32_t seconds) {
  return get(key, [&](lcb_CMDGET *command) { lcb_cmdget_locktime(command, seconds); });
}

Answer Client::get_and_touch(const Key &key, uint32_t expiry) {
  return get(key, [&](lcb_CMDGET *command) { lcb_cmdget_expiry(command, expiry); });
}

Answer Client::copies(const Key &key) {
  lcb_CMDGETREPLICA *command;
  lcb_cmdgetreplica_create(&command, LCB_REPLICA_MODE_ALL);
  PLACE(getreplica, command, key)
  Answer answer = wait([&](Answer *to) { return lcb_getreplica(instance_, to, command); });
  lcb_cmdgetreplica_destroy(command);
  return answer;
}

Answer Client::any_replica(const Key &key) {
  lcb_CMDGETREPLICA *command;
  lcb_cmdgetreplica_create(&command, LCB_REPLICA_MODE_ANY);
  PLACE(getreplica, command, key)
  Answer answer = wait([&](Answer *to) { return lcb_getreplica(instance_, to, command); });
  lcb_cmdgetreplica_destroy(command);
  return answer;
}

Answer Client::exists(const Key &key) {
  lcb_CMDEXISTS *command;
  lcb_cmdexists_create(&command);
  PLACE(exists, command, key)
  Answer answer = wait([&](Answer *to) { return lcb_exists(instance_, to, command); });
  lcb_cmdexists_destroy(command);
  return answer;
}

Answer Client::store(lcb_STORE_OPERATION operation, const Key &key, const std::string &value,
                     const Options &options) {
  lcb_CMDSTORE *command;
  lcb_cmdstore_create(&command, operation);
  PLACE(store, command, key)
  lcb_cmdstore_value(command, value.data(), value.size());
  if (options.cas != 0) lcb_cmdstore_cas(command, options.cas);
  if (options.expiry != 0) lcb_cmdstore_expiry(command, options.expiry);
  if (options.is_expiry_preserved) lcb_cmdstore_preserve_expiry(command, 1);
  if (options.level != LCB_DURABILITYLEVEL_NONE) {
    lcb_cmdstore_durability(command, options.level);
  }
  if (options.persist_to != 0 || options.replicate_to != 0) {
    lcb_cmdstore_durability_observe(command, options.persist_to, options.replicate_to);
  }
  Answer answer = wait([&](Answer *to) { return lcb_store(instance_, to, command); });
  lcb_cmdstore_destroy(command);
  return answer;
}

Answer Client::upsert(const Key &key, const std::string &value, const Options &options) {
  return store(LCB_STORE_UPSERT, key, value, options);
}

Answer Client::remove(const Key &key, const Options &options) {
  lcb_CMDREMOVE *command;
  lcb_cmdremove_create(&command);
  PLACE(remove, command, key)
  if (options.cas != 0) lcb_cmdremove_cas(command, options.cas);
  if (options.level != LCB_DURABILITYLEVEL_NONE) {
    lcb_cmdremove_durability(command, options.level);
  }
  Answer answer = wait([&](Answer *to) { return lcb_remove(instance_, to, command); });
  lcb_cmdremove_destroy(command);
  return answer;
}

Answer Client::count(const Key &key, int64_t delta, const uint64_t *initial,
                     const Options &options) {
  lcb_CMDCOUNTER *command;
  lcb_cmdcounter_create(&command);
  PLACE(counter, command, key)
  lcb_cmdcounter_delta(command, delta);
  if (initial != nullptr) lcb_cmdcounter_initial(command, *initial);
  if (options.level != LCB_DURABILITYLEVEL_NONE) {
    lcb_cmdcounter_durability(command, options.level);
  }
  Answer answer = wait([&](Answer *to) { return lcb_counter(instance_, to, command); });
  lcb_cmdcounter_destroy(command);
  return answer;
}

int Client::node_of(const Key &key) {
  lcb_cntl_vbinfo_t asked = {};
  asked.v.v0.key = key.id.data();
  asked.v.v0.nkey = key.id.size();
  if (lcb_cntl(instance_, LCB_CNTL_GET, LCB_CNTL_VBMAP, &asked) != LCB_SUCCESS) return -1;
  return asked.v.v0.server_index;
}

Answer Client::touch(const Key &key, uint32_t expiry) {
  lcb_CMDTOUCH *command;
  lcb_cmdtouch_create(&command);
  PLACE(touch, command, key)
  lcb_cmdtouch_expiry(command, expiry);
  Answer answer = wait([&](Answer *to) { return lcb_touch(instance_, to, command); });
  lcb_cmdtouch_destroy(command);
  return answer;
}

Answer Client::unlock(const Key &key, uint64_t cas) {
  lcb_CMDUNLOCK *command;
  lcb_cmdunlock_create(&command);
  PLACE(unlock, command, key)
  lcb_cmdunlock_cas(command, cas);
  Answer answer = wait([&](Answer *to) { return lcb_unlock(instance_, to, command); });
  lcb_cmdunlock_destroy(command);
  return answer;
}

Answer Client::paths(const Key &key, size_t count,
                     const std::function<void(lcb_SUBDOCSPECS *)> &specify,
                     lcb_SUBDOC_STORE_SEMANTICS semantics, const Options &options) {
  lcb_SUBDOCSPECS *specs;
  lcb_subdocspecs_create(&specs, count);
  specify(specs);
  lcb_CMDSUBDOC *command;
  lcb_cmdsubdoc_create(&command);
  PLACE(subdoc, command, key)
  lcb_cmdsubdoc_specs(command, specs);
  lcb_cmdsubdoc_store_semantics(command, semantics);
  if (options.cas != 0) lcb_cmdsubdoc_cas(command, options.cas);
  Answer answer = wait([&](Answer *to) { return lcb_subdoc(instance_, to, command); });
  lcb_cmdsubdoc_destroy(command);
  lcb_subdocspecs_destroy(specs);
  return answer;
}

Answer Client::ping() {
  lcb_CMDPING *command;
  lcb_cmdping_create(&command);
  lcb_cmdping_kv(command, 1);
  Answer answer = wait([&](Answer *to) { return lcb_ping(instance_, to, command); });
  lcb_cmdping_destroy(command);
  return answer;
}

Answer Client::rest(lcb_HTTP_METHOD method, const std::string &path, const std::string &body) {
  static const std::string form = "application/x-www-form-urlencoded";
  lcb_CMDHTTP *command;
  lcb_cmdhttp_create(&command, LCB_HTTP_TYPE_MANAGEMENT);
  lcb_cmdhttp_method(command, method);
  lcb_cmdhttp_path(command, path.data(), path.size());
  lcb_cmdhttp_content_type(command, form.data(), form.size());
  lcb_cmdhttp_body(command, body.data(), body.size());
  Answer answer = wait([&](Answer *to) { return lcb_http(instance_, to, command); });
  lcb_cmdhttp_destroy(command);
  return answer;
}

size_t Client::upsert_all(const std::map<std::string, std::string> &documents) {
  Answer answer;
  for (const auto &[id, value] : documents) {
    lcb_CMDSTORE *command;
    lcb_cmdstore_create(&command, LCB_STORE_UPSERT);
    lcb_cmdstore_key(command, id.data(), id.size());
    lcb_cmdstore_value(command, value.data(), value.size());
    lcb_STATUS scheduled = lcb_store(instance_, &answer, command);
    lcb_cmdstore_destroy(command);
    if (scheduled != LCB_SUCCESS) throw Failure(lcb_strerror_short(scheduled));
  }
  lcb_wait(instance_, LCB_WAIT_DEFAULT);
  return answer.number;
}
