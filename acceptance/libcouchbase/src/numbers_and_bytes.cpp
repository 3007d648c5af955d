// Cases: counters, and bytes that are added.
#include "cases.h"

Cases number_and_byte_cases() {
  return {
      {"append",
       [](Run &run) {
         Key key = run.stored("b");
         expect_ok(run.client.store(LCB_STORE_APPEND, key, "c"), "append");
         run.expect_value(key, "bc");
       }},
      {"prepend",
       [](Run &run) {
         Key key = run.stored("b");
         expect_ok(run.client.store(LCB_STORE_PREPEND, key, "a"), "prepend");
         run.expect_value(key, "ab");
       }},
      {"append-missing",
       [](Run &run) {
         expect_status(run.client.store(LCB_STORE_APPEND, run.key(), "c"),
                       {LCB_ERR_DOCUMENT_NOT_FOUND, LCB_ERR_NOT_STORED}, "append");
       }},
      {"increment-creates",
       [](Run &run) {
         uint64_t ten = 10;
         Answer counted = run.client.count(run.key(), 1, &ten);
         expect_ok(counted, "increment");
         expect_equal<uint64_t>(counted.number, 10, "the initial value");
       }},
      {"increment",
       [](Run &run) {
         Key key = run.stored("10");
         expect_equal<uint64_t>(run.client.count(key, 1).number, 11, "one more");
         expect_equal<uint64_t>(run.client.count(key, 31).number, 42, "31 more");
       }},
      {"decrement",
       [](Run &run) {
         Key key = run.stored("42");
         expect_equal<uint64_t>(run.client.count(key, -1).number, 41, "one less");
         expect_equal<uint64_t>(run.client.count(key, -31).number, 10, "31 less");
       }},
      {"decrement-stops-at-zero",
       [](Run &run) {
         Answer counted = run.client.count(run.stored("3"), -5);
         expect_ok(counted, "decrement");
         expect_equal<uint64_t>(counted.number, 0, "the number");
       }},
      {"increment-missing",
       [](Run &run) {
         expect_status(run.client.count(run.key(), 1), {LCB_ERR_DOCUMENT_NOT_FOUND}, "increment");
       }},
      {"increment-not-a-number",
       [](Run &run) {
         Key key = run.stored("text");
         expect_status(run.client.count(key, 1), {LCB_ERR_INVALID_DELTA},
                       "increment");
         run.expect_value(key, "text");
       }},
      {"counter-is-a-document",
       [](Run &run) {
         Key key = run.stored("41");
         run.client.count(key, 1);
         run.expect_value(key, "42");
       }},
  };
}
