#include "store/rocks_crc32c.h"

#include <rocksdb/file_checksum.h>

#include <cstddef>
#include <cstdint>

#include "base/crc32c.h"

namespace {

thread_local bool called = false;

}  // namespace

// What is called in the place of rocksdb::crc32c::Extend, of util/crc32c.h, under the name that the
// linker wants.
// NOLINTNEXTLINE(bugprone-reserved-identifier)
extern "C" uint32_t __wrap__ZN7rocksdb6crc32c6ExtendEjPKcm(uint32_t init_crc, const char* data,
                                                           size_t n) {
  called = true;
  return nowcalls::ExtendCrc32c(init_crc, {data, n});
}

namespace nowcalls::store {

bool RocksCallsOurCrc32c() {
  const auto checksum = rocksdb::GetFileChecksumGenCrc32cFactory()->CreateFileChecksumGenerator({});
  called = false;
  checksum->Update("x", 1);
  return called;
}

}  // namespace nowcalls::store
