// RocksDB's CRC-32C, made fast.
//
// Debian builds RocksDB for processors without an instruction for it, and the library then counts
// with tables: a seventh of what a commit costs, and of what replaying a log does. It calls its own
// function by name, through the dynamic linker, so one of that name in the program takes its place.
// A library that called it directly would only be as slow as it is without.
//
// Thread: any.
#ifndef NOWCALLS_STORE_ROCKS_CRC32C_H_
#define NOWCALLS_STORE_ROCKS_CRC32C_H_

namespace nowcalls::store {

// Whether calls by that name reach ours. Who refers to it has it linked in.
bool RocksCallsOurCrc32c();

}  // namespace nowcalls::store

#endif  // NOWCALLS_STORE_ROCKS_CRC32C_H_
