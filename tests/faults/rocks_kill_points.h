// RocksDB's own kill points: places in its code, between two steps that must not be torn apart,
// where it ends its process at random.
//
// Thread: any, before RocksDB is used. They exist in a library that was built without NDEBUG, as
// Debian's is. RocksDB prints "Crashing at FILE:LINE" to stdout and sends SIGTERM to its own
// process, so whoever wants a kill must turn that into one (faulty_server_main.cc).
#ifndef NOWCALLS_FAULTS_ROCKS_KILL_POINTS_H_
#define NOWCALLS_FAULTS_ROCKS_KILL_POINTS_H_

#include <string>

namespace nowcalls::faults {

// Whether the library that this process is linked with has them.
bool RocksKillPointsAvailable();

// Of that library, as "7.8.3".
std::string RocksVersion();

// From now on each point ends the process once in `odds` times (some, which are passed often, a
// multiple of it); 0: never. Does nothing where they are not available.
void SetRocksKillOdds(int odds);

}  // namespace nowcalls::faults

#endif  // NOWCALLS_FAULTS_ROCKS_KILL_POINTS_H_
