// Kinds of files in a ledger's directory, by RocksDB's names.
//
// Thread: any; pure. Arguments are names or paths.
#ifndef NOWCALLS_STORE_DISK_FILE_NAMES_H_
#define NOWCALLS_STORE_DISK_FILE_NAMES_H_

#include <cstdint>
#include <string>
#include <string_view>

namespace nowcalls::store {

// N of "N.log"; 0: no log.
uint64_t LogNumber(std::string_view path);
// "000012.log".
std::string LogName(uint64_t number);
// N of "MANIFEST-N"; 0: no manifest.
uint64_t ManifestNumber(std::string_view path);

inline bool IsLog(std::string_view path) { return LogNumber(path) != 0; }
inline bool IsManifest(std::string_view path) { return ManifestNumber(path) != 0; }
inline bool IsTable(std::string_view path) { return path.ends_with(".sst"); }

}  // namespace nowcalls::store

#endif  // NOWCALLS_STORE_DISK_FILE_NAMES_H_
