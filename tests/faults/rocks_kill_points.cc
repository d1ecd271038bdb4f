#include "faults/rocks_kill_points.h"

#include <rocksdb/version.h>

namespace rocksdb {

// Of test_util/sync_point.h, which Debian does not install; its first member is all that is used.
struct KillPoint {
  [[gnu::weak]] static KillPoint* GetInstance();

  int rocksdb_kill_odds;
};

}  // namespace rocksdb

namespace nowcalls::faults {

bool RocksKillPointsAvailable() { return &rocksdb::KillPoint::GetInstance != nullptr; }

// It also is what has the linker keep the library for a program that uses no other part of it.
std::string RocksVersion() { return rocksdb::GetRocksVersionAsString(); }

void SetRocksKillOdds(int odds) {
  if (RocksKillPointsAvailable()) rocksdb::KillPoint::GetInstance()->rocksdb_kill_odds = odds;
}

}  // namespace nowcalls::faults
