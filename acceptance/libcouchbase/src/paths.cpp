// Cases: parts of documents.
#include "cases.h"

namespace {

const std::string DOCUMENT = R"({"name":"Ann","scores":[3,5],"address":{"city":"Ulm"}})";

// Paths with their values, as the C interface takes them.
#define PATH(path) path.data(), path.size()
#define PATH_AND_VALUE(path, value) path.data(), path.size(), value.data(), value.size()

using Specs = lcb_SUBDOCSPECS;

Answer look_up(Run &run, const Key &key, const std::vector<std::string> &paths) {
  return run.client.paths(key, paths.size(), [&](Specs *specs) {
    for (size_t index = 0; index < paths.size(); index++) {
      lcb_subdocspecs_get(specs, index, 0, PATH(paths[index]));
    }
  });
}

Answer put(Run &run, const Key &key, const std::string &path, const std::string &value,
           lcb_SUBDOC_STORE_SEMANTICS semantics = LCB_SUBDOC_STORE_REPLACE) {
  return run.client.paths(
      key, 1,
      [&](Specs *specs) { lcb_subdocspecs_dict_upsert(specs, 0, 0, PATH_AND_VALUE(path, value)); },
      semantics);
}

void arrays(Run &run) {
  Key key = run.stored(R"({"a":[2]})");
  const std::string path = "a", place = "a[1]", one = "1", three = "3", half = "2.5";
  Answer changed = run.client.paths(key, 3, [&](Specs *specs) {
    lcb_subdocspecs_array_add_first(specs, 0, 0, PATH_AND_VALUE(path, one));
    lcb_subdocspecs_array_add_last(specs, 1, 0, PATH_AND_VALUE(path, three));
    lcb_subdocspecs_array_insert(specs, 2, 0, PATH_AND_VALUE(place, half));
  });
  expect_ok(changed, "changes of an array");
  run.expect_value(key, R"({"a":[1,2.5,2,3]})");
  Answer twice = run.client.paths(key, 1, [&](Specs *specs) {
    lcb_subdocspecs_array_add_unique(specs, 0, 0, PATH_AND_VALUE(path, one));
  });
  expect(twice.status != LCB_SUCCESS || twice.parts.at(0).status == LCB_ERR_SUBDOC_PATH_EXISTS,
         "what is there is not added");
}

void counters(Run &run) {
  Key key = run.stored(R"({"n":41,"t":"x"})");
  const std::string number = "n", word = "t";
  Answer counted = run.client.paths(
      key, 1, [&](Specs *specs) { lcb_subdocspecs_counter(specs, 0, 0, PATH(number), 1); });
  expect_ok(counted, "a counter");
  expect_equal<std::string>(counted.parts.at(0).value, "42", "the number");
  Answer refused = run.client.paths(
      key, 1, [&](Specs *specs) { lcb_subdocspecs_counter(specs, 0, 0, PATH(word), 1); });
  expect(refused.status != LCB_SUCCESS || refused.parts.at(0).status != LCB_SUCCESS,
         "a text does not count");
  run.expect_value(key, R"({"n":42,"t":"x"})");
}

void changed(Run &run) {
  Key key = run.stored(DOCUMENT);
  expect_ok(put(run, key, "address.city", "\"Bonn\""), "change of a path");
  const std::string name = "name", age = "age", forty = "40";
  Answer both = run.client.paths(key, 2, [&](Specs *specs) {
    lcb_subdocspecs_remove(specs, 0, 0, PATH(name));
    lcb_subdocspecs_dict_add(specs, 1, 0, PATH_AND_VALUE(age, forty));
  });
  expect_ok(both, "two changes");
  run.expect_value(key, R"({"scores":[3,5],"address":{"city":"Bonn"},"age":40})");
}

} // namespace

Cases path_cases() {
  return {
      {"paths-are-looked-up",
       [](Run &run) {
         Answer found = look_up(run, run.stored(DOCUMENT), {"name", "scores[1]", "address"});
         expect_ok(found, "look-up");
         expect_equal<std::string>(found.parts.at(0).value, "\"Ann\"", "a text");
         expect_equal<std::string>(found.parts.at(1).value, "5", "an element");
         expect_equal<std::string>(found.parts.at(2).value, R"({"city":"Ulm"})", "an object");
       }},
      {"paths-that-are-not-there",
       [](Run &run) {
         Answer found = look_up(run, run.stored(DOCUMENT), {"name", "none", "name.first"});
         expect_ok(Answer{found.parts.at(0).status}, "a path that is there");
         expect_status(Answer{found.parts.at(1).status}, {LCB_ERR_SUBDOC_PATH_NOT_FOUND},
                       "a path that is not there");
         expect_status(Answer{found.parts.at(2).status}, {LCB_ERR_SUBDOC_PATH_MISMATCH},
                       "a path through a text");
         expect_status(look_up(run, run.key(), {"name"}), {LCB_ERR_DOCUMENT_NOT_FOUND},
                       "a path of no document");
       }},
      {"paths-are-changed", changed},
      {"arrays-are-changed", arrays},
      {"counters-in-documents", counters},
      {"documents-are-created-by-paths",
       [](Run &run) {
         Key key = run.key();
         expect_status(put(run, key, "a", "1"), {LCB_ERR_DOCUMENT_NOT_FOUND}, "a replace");
         expect_ok(put(run, key, "a", "1", LCB_SUBDOC_STORE_UPSERT), "an upsert");
         run.expect_value(key, R"({"a":1})");
         expect_status(put(run, key, "a", "2", LCB_SUBDOC_STORE_INSERT),
                       {LCB_ERR_DOCUMENT_EXISTS}, "an insertion");
       }},
  };
}
