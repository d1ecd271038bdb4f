// Asks RocksDB to compact files in which ended tokens outweigh live ones.
//
// A SingleDelete that reaches a file stays there until a compaction meets its Put. Until then each
// sweep steps over it. RocksDB's own CompactOnDeletionCollector counts Delete only; this one counts
// SingleDelete.
//
// Thread: any.
#ifndef NOWCALLS_STORE_ROCKS_TOMBSTONE_COLLECTOR_H_
#define NOWCALLS_STORE_ROCKS_TOMBSTONE_COLLECTOR_H_

#include <rocksdb/table_properties.h>

#include <cstdint>
#include <memory>

namespace nowcalls::store {

// A file is dense when it has at least this many tombstones and they are half of its entries.
inline constexpr uint64_t kTombstonesDenseMin = 256;

// The table property under which a file's number of SingleDeletes is kept, as decimal digits.
inline constexpr char kTombstonesProperty[] = "nowcalls.single_deletes";

std::shared_ptr<rocksdb::TablePropertiesCollectorFactory> NewTombstoneCollectorFactory();

}  // namespace nowcalls::store

#endif  // NOWCALLS_STORE_ROCKS_TOMBSTONE_COLLECTOR_H_
