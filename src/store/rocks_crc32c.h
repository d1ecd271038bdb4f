// RocksDB's CRC-32C, made fast.
//
// Debian builds RocksDB for processors without an instruction for it, and the library then counts
// with tables: a seventh of what a commit costs, and of what replaying a log does. Its function is
// called from other files than its own, so the linker can have ours called instead (`--wrap`, in
// CMakeLists.txt). Without that the library would only be as slow as it is.
//
// Thread: any.
#ifndef NOWCALLS_STORE_ROCKS_CRC32C_H_
#define NOWCALLS_STORE_ROCKS_CRC32C_H_

namespace nowcalls::store {

// Whether RocksDB calls ours: it is asked for a checksum.
bool RocksCallsOurCrc32c();

}  // namespace nowcalls::store

#endif  // NOWCALLS_STORE_ROCKS_CRC32C_H_
