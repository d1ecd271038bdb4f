// nowcalls-faulty-server: nowcalls-server as it is, but for a disk of which a call fails, and
// buffers so small that a few hundred calls flush and compact.
//
//   FAULTY_DISK="NTH[ sticky][ full]"   which call of RocksDB fails, from there on, with ENOSPC
//   FAULTY_DISK_NOTE=FILE               gets the time (CLOCK_BOOTTIME, us) and the call that failed
#include <rocksdb/env.h>

#include <cstdlib>
#include <memory>
#include <sstream>
#include <string>

#include "base/clock.h"
#include "faults/faulty_file_system.h"
#include "faults/life.h"
#include "server/main.h"
#include "support/process.h"

namespace {

std::string Setting(const char* name) {
  const char* value = std::getenv(name);
  return value == nullptr ? "" : value;
}

nowcalls::faults::Failure WantedFailure() {
  nowcalls::faults::Failure failure;
  std::istringstream words(Setting("FAULTY_DISK"));
  words >> failure.nth;
  for (std::string word; words >> word;) {
    if (word == "sticky") failure.sticky = true;
    if (word == "full") failure.disk_full = true;
  }
  return failure;
}

}  // namespace

int main(int argc, char** argv) {
  const std::string note = Setting("FAULTY_DISK_NOTE");
  const auto files = std::make_shared<nowcalls::faults::FaultyFileSystem>(
      rocksdb::FileSystem::Default(), WantedFailure(), [&](const std::string& call) {
        nowcalls::testing::WriteStringToFile(note,
                                             std::to_string(nowcalls::BoottimeUs()) + " " + call);
      });
  const std::unique_ptr<rocksdb::Env> env = rocksdb::NewCompositeEnv(files);
  nowcalls::store::RocksStoreOptions store = nowcalls::faults::SmallOptions();
  store.wal_bytes_max = 4 * 1024;
  store.env = env.get();
  return nowcalls::server::Main(argc, argv, store);
}
