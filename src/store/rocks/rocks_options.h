// Every RocksDB option that nowcalls sets, with its reason in rocks_options.cc.
#ifndef NOWCALLS_STORE_ROCKS_ROCKS_OPTIONS_H_
#define NOWCALLS_STORE_ROCKS_ROCKS_OPTIONS_H_

#include <rocksdb/options.h>

#include <cstdint>
#include <functional>
#include <memory>
#include <string>

#include "store/memtable/append_memtable.h"
#include "store/rocks/rocks_store.h"

namespace nowcalls::store {

// Of a server, but for its `env`. `report` is told of the first background error, on a thread of
// RocksDB, in a message that names `dir`.
rocksdb::DBOptions ServerDbOptions(const RocksStoreOptions& options, const std::string& dir,
                                   std::function<void(const Status&)> report);

// Of a tool that reads, in either ReadMode. Writes no file, not even RocksDB's own log.
rocksdb::DBOptions ReaderDbOptions();

// Of every column family.
rocksdb::ColumnFamilyOptions FamilyOptions(size_t write_buffer_bytes,
                                           std::shared_ptr<AppendMemtableFactory> memtables);

rocksdb::WriteOptions CommitOptions(Durability durability);

// The size of the files of zeros that logs are begun in; 0: none.
uint64_t SpareLogBytes(const RocksStoreOptions& options);

}  // namespace nowcalls::store

#endif  // NOWCALLS_STORE_ROCKS_ROCKS_OPTIONS_H_
