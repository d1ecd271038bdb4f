#include "store/version.h"

#include <rocksdb/version.h>

namespace nowcalls::store {

std::string RocksDbVersion() { return rocksdb::GetRocksVersionAsString(); }

}  // namespace nowcalls::store
