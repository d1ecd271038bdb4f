#include "store/rocks_crc32c.h"

#include <dlfcn.h>

#include <cstddef>
#include <cstdint>

#include "base/crc32c.h"

namespace rocksdb::crc32c {

// util/crc32c.h, which is not among RocksDB's public headers.
uint32_t Extend(uint32_t init_crc, const char* data, size_t n);

uint32_t Extend(uint32_t init_crc, const char* data, size_t n) {
  return nowcalls::ExtendCrc32c(init_crc, {data, n});
}

}  // namespace rocksdb::crc32c

namespace nowcalls::store {

bool RocksCallsOurCrc32c() {
  const void* found = dlsym(RTLD_DEFAULT, "_ZN7rocksdb6crc32c6ExtendEjPKcm");
  return found == reinterpret_cast<const void*>(&rocksdb::crc32c::Extend);
}

}  // namespace nowcalls::store
