#include "store/rocks_crc32c.h"

#include <doctest/doctest.h>

namespace nowcalls::store {
namespace {

TEST_CASE("RocksDB's checksums are made by our function") { CHECK(RocksCallsOurCrc32c()); }

}  // namespace
}  // namespace nowcalls::store
