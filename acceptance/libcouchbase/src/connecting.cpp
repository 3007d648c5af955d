// Cases: connecting.
#include "cases.h"

namespace {

void expect_refused(const std::string &bucket, const std::string &user,
                    const std::string &password, const std::vector<lcb_STATUS> &wanted) {
  Client client(variable("SETTEE_CONNECT"), bucket, user, password);
  Answer answer;
  answer.status = client.status();
  expect_status(answer, wanted, "connecting");
}

} // namespace

Cases connecting_cases() {
  return {
      {"connect",
       [](Run &run) {
         Key key = run.stored("1");
         Client fresh(variable("SETTEE_CONNECT"), "default", variable("SETTEE_USER"),
                      variable("SETTEE_PASSWORD"));
         expect(fresh.status() == LCB_SUCCESS, "a fresh client connects");
         expect_ok(fresh.get(key), "a fresh client reads");
       }},
      {"ping",
       [](Run &run) {
         Answer pinged = run.client.ping();
         expect_ok(pinged, "ping");
         expect(pinged.number > 0, "the data service answers");
       }},
      {"wrong-password-is-refused",
       [](Run &) {
         expect_refused("default", variable("SETTEE_USER"), "wrong",
                        {LCB_ERR_AUTHENTICATION_FAILURE});
       }},
      {"unknown-user-is-refused",
       [](Run &) {
         expect_refused("default", "nobody", variable("SETTEE_PASSWORD"),
                        {LCB_ERR_AUTHENTICATION_FAILURE});
       }},
      {"unknown-bucket-is-refused",
       [](Run &) {
         expect_refused("absent", variable("SETTEE_USER"), variable("SETTEE_PASSWORD"),
                        {LCB_ERR_BUCKET_NOT_FOUND, LCB_ERR_AUTHENTICATION_FAILURE});
       }},
  };
}
