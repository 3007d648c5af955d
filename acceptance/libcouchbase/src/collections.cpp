// Cases: documents in collections.
#include "cases.h"

namespace {

const std::string SCOPES = "/pools/default/buckets/default/scopes";

const std::vector<lcb_STATUS> UNKNOWN = {LCB_ERR_COLLECTION_NOT_FOUND, LCB_ERR_SCOPE_NOT_FOUND,
                                         LCB_ERR_TIMEOUT};

void expect_rest(Run &run, lcb_HTTP_METHOD method, const std::string &path,
                 const std::string &body, uint16_t wanted) {
  Answer answer = run.client.rest(method, path, body);
  expect_equal<uint16_t>(answer.http_status, wanted, "status of " + path);
}

// A new collection, which can be used.
void create(Run &run, const std::string &name) {
  run.client.rest(LCB_HTTP_METHOD_POST, SCOPES, "name=shop");
  expect_rest(run, LCB_HTTP_METHOD_POST, SCOPES + "/shop/collections", "name=" + name, 200);
}

void expect_unknown(Run &run, const Key &key) {
  expect_status(run.client.get(key), UNKNOWN, "read");
  expect_status(run.client.upsert(key, "2"), UNKNOWN, "store");
}

} // namespace

Cases collection_cases() {
  return {
      {"collections-come-and-go",
       [](Run &run) {
         expect_rest(run, LCB_HTTP_METHOD_POST, SCOPES, "name=market", 200);
         std::string market = SCOPES + "/market";
         expect_rest(run, LCB_HTTP_METHOD_POST, market + "/collections", "name=fruit", 200);
         expect_rest(run, LCB_HTTP_METHOD_POST, market + "/collections", "name=fruit", 400);
         expect_rest(run, LCB_HTTP_METHOD_DELETE, market + "/collections/fruit", "", 200);
         expect_rest(run, LCB_HTTP_METHOD_DELETE, market, "", 200);
         expect_rest(run, LCB_HTTP_METHOD_DELETE, market, "", 404);
       }},
      {"documents-in-collections",
       [](Run &run) {
         create(run, "fruit");
         create(run, "nuts");
         std::string id = run.key().id;
         Key fruit{id, "shop", "fruit"}, nuts{id, "shop", "nuts"};
         expect_ok(run.client.upsert(fruit, "fruit"), "store");
         expect_ok(run.client.upsert(nuts, "nuts"), "store");
         expect(run.is_gone({id}), "the default collection has none");
         run.expect_value(fruit, "fruit");
         expect_ok(run.client.remove(fruit), "removal");
         expect(run.is_gone(fruit), "it is gone");
         run.expect_value(nuts, "nuts");
         uint64_t seven = 7;
         Answer counted = run.client.count({"count", "shop", "nuts"}, 1, &seven);
         expect_equal<uint64_t>(counted.number, 7, "the counter");
       }},
      {"dropped-collection",
       [](Run &run) {
         create(run, "short");
         Key key{"k", "shop", "short"};
         expect_ok(run.client.upsert(key, "1"), "store");
         expect_rest(run, LCB_HTTP_METHOD_DELETE, SCOPES + "/shop/collections/short", "", 200);
         expect_unknown(run, key);
         create(run, "short");
         expect(run.is_gone(key), "one of the same name is empty");
         expect_ok(run.client.upsert(key, "3"), "store");
         run.expect_value(key, "3");
       }},
      {"unknown-collection",
       [](Run &run) {
         expect_unknown(run, {"k", "_default", "unknown"});
         expect_unknown(run, {"k", "unknown", "c"});
       }},
  };
}
