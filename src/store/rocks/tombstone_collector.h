// Has RocksDB compact files in which ended tokens outweigh live ones, by SingleDeletes.
//
// Thread: any.
#ifndef NOWCALLS_STORE_ROCKS_TOMBSTONE_COLLECTOR_H_
#define NOWCALLS_STORE_ROCKS_TOMBSTONE_COLLECTOR_H_

#include <rocksdb/table_properties.h>

#include <cstdint>
#include <memory>

namespace nowcalls::store {

// Dense: at least this many tombstones, and half of the entries.
inline constexpr uint64_t kTombstonesDenseMin = 256;

// In decimal digits.
inline constexpr char kTombstonesProperty[] = "nowcalls.single_deletes";

std::shared_ptr<rocksdb::TablePropertiesCollectorFactory> NewTombstoneCollectorFactory();

}  // namespace nowcalls::store

#endif  // NOWCALLS_STORE_ROCKS_TOMBSTONE_COLLECTOR_H_
