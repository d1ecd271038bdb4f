// The version of the linked RocksDB. Thread: any.
#ifndef NOWCALLS_STORE_VERSION_H_
#define NOWCALLS_STORE_VERSION_H_

#include <string>

namespace nowcalls::store {

std::string RocksDbVersion();  // "7.8.3"

}  // namespace nowcalls::store

#endif  // NOWCALLS_STORE_VERSION_H_
