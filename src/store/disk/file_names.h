// What the files of a ledger's directory are, by the names that RocksDB gives them.
//
// Thread: any; pure. Each takes a name or a path.
#ifndef NOWCALLS_STORE_DISK_FILE_NAMES_H_
#define NOWCALLS_STORE_DISK_FILE_NAMES_H_

#include <cstdint>
#include <string>
#include <string_view>

namespace nowcalls::store {

// The number of a log, "N.log"; 0: the file is none.
uint64_t LogNumber(std::string_view path);
// The reverse: "000012.log".
std::string LogName(uint64_t number);
// The number of a manifest, "MANIFEST-N"; 0: the file is none.
uint64_t ManifestNumber(std::string_view path);

inline bool IsLog(std::string_view path) { return LogNumber(path) != 0; }
inline bool IsManifest(std::string_view path) { return ManifestNumber(path) != 0; }
inline bool IsTable(std::string_view path) { return path.ends_with(".sst"); }

}  // namespace nowcalls::store

#endif  // NOWCALLS_STORE_DISK_FILE_NAMES_H_
