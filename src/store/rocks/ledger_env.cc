#include "store/rocks/ledger_env.h"

#include <rocksdb/file_system.h>
#include <rocksdb/system_clock.h>

#include <algorithm>
#include <cstdint>
#include <utility>

namespace nowcalls::store {
namespace {

// RocksDB asserts that no time lies before 1970. Such a wall clock would end each start, and a
// running server.
class ClockSince1970 : public rocksdb::SystemClockWrapper {
 public:
  using SystemClockWrapper::SystemClockWrapper;
  const char* Name() const override { return "nowcalls.ClockSince1970"; }
  uint64_t NowMicros() override {
    return static_cast<uint64_t>(
        std::max<int64_t>(0, static_cast<int64_t>(SystemClockWrapper::NowMicros())));
  }
  rocksdb::Status GetCurrentTime(int64_t* unix_time) override {
    rocksdb::Status status = SystemClockWrapper::GetCurrentTime(unix_time);
    if (status.ok()) *unix_time = std::max<int64_t>(0, *unix_time);
    return status;
  }
};

}  // namespace

LedgerEnv::LedgerEnv(std::unique_ptr<rocksdb::Env> env) : rocksdb::EnvWrapper(std::move(env)) {
  // Without these two, EnvWrapper makes its own from the Env's older calls.
  file_system_ = target()->GetFileSystem();
  system_clock_ = std::make_shared<ClockSince1970>(target()->GetSystemClock());
}

rocksdb::Env* LedgerEnv::OfDisk() {
  static auto* const env = new LedgerEnv(rocksdb::NewCompositeEnv(rocksdb::FileSystem::Default()));
  return env;
}

}  // namespace nowcalls::store
