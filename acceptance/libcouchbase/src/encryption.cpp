// Cases: TLS. Its files are named by variables.
#include "cases.h"

namespace {

std::string trusting(const char *authority) {
  // Whose certificates are trusted; a short time for those whose are not.
  return "truststorepath=" + variable(authority) + "&config_total_timeout=5";
}

std::string showing(const char *certificate, const char *key) {
  return trusting("SETTEE_AUTHORITY") + "&certpath=" + variable(certificate) +
         "&keypath=" + variable(key);
}

void expect_refused(const std::string &options, bool has_password) {
  Client client(variable("SETTEE_TLS_CONNECT"), "default",
                has_password ? variable("SETTEE_USER") : "",
                has_password ? variable("SETTEE_PASSWORD") : "", options);
  expect(client.status() != LCB_SUCCESS, "nobody connects so");
}

} // namespace

void exchange_behind_tls(const std::string &options, bool has_password, const std::string &name,
                         const std::vector<size_t> &sizes) {
  Client client(variable("SETTEE_TLS_CONNECT"), "default",
                has_password ? variable("SETTEE_USER") : "",
                has_password ? variable("SETTEE_PASSWORD") : "", options);
  expect(client.status() == LCB_SUCCESS, lcb_strerror_short(client.status()));
  for (size_t size : sizes) {
    Key key{name + "-" + std::to_string(size)};
    std::string value(size, 'x');
    expect_ok(client.upsert(key, value), "store");
    expect(client.get(key).value == value, std::to_string(size) + " bytes come back");
  }
}

Cases encryption_cases() {
  return {
      {"tls-exchanges-documents",
       [](Run &) {
         exchange_behind_tls(trusting("SETTEE_AUTHORITY"), true, "tls",
                             {1, 5000, 20'000, 1 << 20, 15 << 20});
       }},
      {"tls-of-another-authority-is-refused",
       [](Run &) { expect_refused(trusting("SETTEE_OTHER_AUTHORITY"), true); }},
      {"tls-client-certificate",
       [](Run &) {
         exchange_behind_tls(showing("SETTEE_CERTIFICATE", "SETTEE_KEY"), false,
                             "tls-certificate", {100});
       }},
      {"tls-certificate-of-nobody",
       [](Run &) {
         expect_refused(showing("SETTEE_STRANGERS_CERTIFICATE", "SETTEE_STRANGERS_KEY"), false);
         exchange_behind_tls(trusting("SETTEE_AUTHORITY"), true, "tls-after-nobody", {100});
       }},
  };
}
