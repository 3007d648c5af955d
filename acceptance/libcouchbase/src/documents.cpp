// Cases: whole documents.
#include "cases.h"

namespace {

// A document with an old and a present version; it holds 2.
struct Overwritten {
  Key key;
  uint64_t stale, present;
};

Overwritten overwritten(Run &run) {
  Key key = run.key();
  Answer first = run.client.upsert(key, "1"), second = run.client.upsert(key, "2");
  expect_ok(first, "first store");
  expect_ok(second, "second store");
  return {key, first.cas, second.cas};
}

Options version(uint64_t cas) {
  Options options;
  options.cas = cas;
  return options;
}

void tokens(Run &run) {
  Key key = run.key();
  Answer stored = run.client.upsert(key, "1");
  Answer replaced = run.client.store(LCB_STORE_REPLACE, key, "2");
  Answer removed = run.client.remove(key);
  expect(lcb_mutation_token_is_valid(&stored.token) != 0, "a store has a token");
  expect(replaced.token.uuid_ == stored.token.uuid_, "one uuid");
  expect(replaced.token.seqno_ > stored.token.seqno_, "a replace has a higher seqno");
  expect(removed.token.seqno_ > replaced.token.seqno_, "a removal has a higher seqno");
}

} // namespace

Cases document_cases() {
  return {
      {"upsert-and-get",
       [](Run &run) {
         Key key = run.key();
         Answer stored = run.client.upsert(key, "{\"n\":1}"), read = run.client.get(key);
         expect_ok(stored, "store");
         expect(stored.cas != 0 && stored.cas == read.cas, "the CAS of the store is read");
         expect_equal<std::string>(read.value, "{\"n\":1}", "the value");
       }},
      {"upsert-overwrites",
       [](Run &run) {
         Overwritten made = overwritten(run);
         expect(made.present > made.stale, "the CAS grows");
         run.expect_value(made.key, "2");
       }},
      {"insert-new",
       [](Run &run) {
         Key key = run.key();
         expect_ok(run.client.store(LCB_STORE_INSERT, key, "1"), "insertion");
         run.expect_value(key, "1");
       }},
      {"insert-existing",
       [](Run &run) {
         Key key = run.stored("1");
         expect_status(run.client.store(LCB_STORE_INSERT, key, "2"), {LCB_ERR_DOCUMENT_EXISTS},
                       "insertion of a present key");
         run.expect_value(key, "1");
       }},
      {"get-missing",
       [](Run &run) {
         expect_status(run.client.get(run.key()), {LCB_ERR_DOCUMENT_NOT_FOUND}, "read");
       }},
      {"replace-existing",
       [](Run &run) {
         Key key = run.stored("1");
         expect_ok(run.client.store(LCB_STORE_REPLACE, key, "2"), "replace");
         run.expect_value(key, "2");
       }},
      {"replace-missing",
       [](Run &run) {
         Key key = run.key();
         expect_status(run.client.store(LCB_STORE_REPLACE, key, "2"),
                       {LCB_ERR_DOCUMENT_NOT_FOUND}, "replace");
         expect(run.is_gone(key), "nothing is created");
       }},
      {"replace-with-cas",
       [](Run &run) {
         Overwritten made = overwritten(run);
         Options present = version(made.present);
         expect_ok(run.client.store(LCB_STORE_REPLACE, made.key, "3", present), "replace");
         run.expect_value(made.key, "3");
       }},
      {"replace-with-stale-cas",
       [](Run &run) {
         Overwritten made = overwritten(run);
         Options stale = version(made.stale);
         expect_status(run.client.store(LCB_STORE_REPLACE, made.key, "3", stale),
                       {LCB_ERR_CAS_MISMATCH}, "replace");
         run.expect_value(made.key, "2");
       }},
      {"exists",
       [](Run &run) {
         Key key = run.key();
         expect(!run.client.exists(key).exists, "never stored");
         run.client.upsert(key, "1");
         expect(run.client.exists(key).exists, "stored");
         run.client.remove(key);
         expect(!run.client.exists(key).exists, "removed");
       }},
      {"remove",
       [](Run &run) {
         Key key = run.stored("1");
         Answer removed = run.client.remove(key);
         expect_ok(removed, "removal");
         expect(removed.cas != 0, "a removal has a CAS");
         expect(run.is_gone(key), "the document is gone");
       }},
      {"remove-missing",
       [](Run &run) {
         Key key = run.stored("1");
         run.client.remove(key);
         expect_status(run.client.remove(key), {LCB_ERR_DOCUMENT_NOT_FOUND}, "second removal");
         expect_status(run.client.remove(run.key()), {LCB_ERR_DOCUMENT_NOT_FOUND}, "removal");
       }},
      {"remove-with-stale-cas",
       [](Run &run) {
         Overwritten made = overwritten(run);
         expect_status(run.client.remove(made.key, version(made.stale)), {LCB_ERR_CAS_MISMATCH},
                       "removal");
         expect_ok(run.client.remove(made.key, version(made.present)), "removal");
       }},
      {"insert-after-remove",
       [](Run &run) {
         Key key = run.stored("1");
         Answer removed = run.client.remove(key);
         Answer inserted = run.client.store(LCB_STORE_INSERT, key, "2");
         expect_ok(inserted, "insertion");
         expect(inserted.cas > removed.cas, "the CAS grows");
       }},
      {"mutation-tokens", tokens},
      {"unicode-key",
       [](Run &run) {
         Key key{"schlüssel-鍵-🔑"};
         expect_ok(run.client.upsert(key, "1"), "store");
         run.expect_value(key, "1");
       }},
      {"key-of-250-bytes",
       [](Run &run) {
         Key key{std::string(250, 'k')};
         expect_ok(run.client.upsert(key, "1"), "store");
         run.expect_value(key, "1");
       }},
      {"key-of-251-bytes",
       [](Run &run) {
         expect(run.client.upsert({std::string(251, 'k')}, "1").status != LCB_SUCCESS,
                "a longer key is refused");
       }},
      {"parallel-operations",
       [](Run &run) {
         std::map<std::string, std::string> documents;
         for (int number = 0; number < 500; number++) {
           documents[run.key().id] = std::to_string(number);
         }
         expect_equal<size_t>(run.client.upsert_all(documents), 500, "number of stores");
         for (const auto &[id, value] : documents) run.expect_value({id}, value);
       }},
  };
}
