#include "net/address.h"

#include <doctest/doctest.h>

namespace nowcalls::net {
namespace {

TEST_CASE("an address in digits is written in one way, and a name is none") {
  CHECK(AddressInDigits("10.0.0.9") == "10.0.0.9");
  CHECK(AddressInDigits("0:0:0::1") == "::1");
  CHECK(AddressInDigits("FE80::A") == "fe80::a");
  for (const char* none :
       {"", "localhost", "10.0.0", "10.0.0.9:1", "[::1]", " 10.0.0.9", "::1%lo"}) {
    CAPTURE(none);
    CHECK(!AddressInDigits(none));
  }
}

}  // namespace
}  // namespace nowcalls::net
