#include "client/dialing.h"

#include <doctest/doctest.h>

namespace nowcalls::client {
namespace {

TEST_CASE("each of several addresses has its share of what a call may take") {
  Prng prng(1);
  Dialing dialing({"dead:1", "dead:2", "good:3"}, 0);
  int64_t spent_ms = 0;
  for (int i = 0; i < 2; ++i) {
    spent_ms += dialing.share_ms(900);
    dialing.Failed(0, &prng);
  }
  CHECK(dialing.address() == "good:3");
  CHECK(spent_ms == 600);
}

TEST_CASE("the share of an address grows with each row, up to what one may take") {
  Prng prng(1);
  Dialing dialing({"far:1", "far:2"}, 0);
  CHECK(dialing.share_ms(1000) == 500);
  for (int i = 0; i < 2; ++i) dialing.Failed(0, &prng);
  CHECK(dialing.share_ms(1000) == 1000);
  for (int i = 0; i < 100; ++i) dialing.Failed(0, &prng);
  CHECK(dialing.share_ms(1000) == 1000);
  CHECK(dialing.share_ms(60'000) == kDialMsMax);
}

TEST_CASE("one address has all the time, and no share is nothing") {
  CHECK(Dialing({"one:1"}, 0).share_ms(1000) == 1000);
  CHECK(Dialing({"one:1"}, 0).share_ms(5000) == kDialMsMax);
  CHECK(Dialing({"a:1", "b:1", "c:1"}, 0).share_ms(1) == 1);
}

}  // namespace
}  // namespace nowcalls::client
