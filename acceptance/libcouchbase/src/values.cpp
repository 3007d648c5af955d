// Cases: values of all kinds and sizes.
#include "cases.h"

namespace {

constexpr size_t MIB = 1 << 20;

void exchange(Run &run, const std::string &value) { run.expect_value(run.stored(value), value); }

std::string bytes(size_t size) {
  std::string made(size, '\0');
  uint32_t state = 17;
  for (char &each : made) each = static_cast<char>((state = state * 1664525 + 1013904223) >> 24);
  return made;
}

} // namespace

Cases value_cases() {
  return {
      {"json-as-text", [](Run &run) { exchange(run, "{ \"a\" : [1, 2.50, null] }"); }},
      {"binary-values", [](Run &run) { exchange(run, bytes(3000)); }},
      {"empty-value", [](Run &run) { exchange(run, ""); }},
      {"value-of-1-mib", [](Run &run) { exchange(run, bytes(MIB)); }},
      {"value-of-20-mib",
       [](Run &run) {
         exchange(run, bytes(20 * MIB));
         exchange(run, bytes(20 * MIB - 1));
       }},
      {"value-above-20-mib",
       [](Run &run) {
         Key key = run.key();
         expect_status(run.client.upsert(key, bytes(20 * MIB + 1)), {LCB_ERR_VALUE_TOO_LARGE},
                       "store");
         expect(run.is_gone(key), "nothing is stored");
       }},
      {"compressible-value", [](Run &run) { exchange(run, std::string(MIB, 'x')); }},
  };
}
