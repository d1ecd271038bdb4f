#include "unit/store/elsewhere.h"

#include <doctest/doctest.h>
#include <stdlib.h>
#include <sys/stat.h>

#include <cstdint>
#include <filesystem>
#include <system_error>

#include "store/disk/file_copy.h"

namespace nowcalls::store {
namespace {

namespace fs = std::filesystem;

constexpr uint64_t kCopyBytesMax = 64 * 1024 * 1024;

}  // namespace

Elsewhere::Elsewhere(const testing::TempDir& dir) {
  char made[] = "/dev/shm/nowcalls-copy-XXXXXX";
  if (mkdtemp(made) == nullptr) return;
  path_ = made;
  struct stat here {};
  struct stat there {};
  REQUIRE(stat(dir.path().c_str(), &here) == 0);
  REQUIRE(stat(made, &there) == 0);
  // In a container there are often 64 MB in all.
  found_ =
      here.st_dev != there.st_dev && fs::space(path_).available >= kRoomLeftBytes + kCopyBytesMax;
}

Elsewhere::~Elsewhere() {
  std::error_code ignored;
  if (!path_.empty()) fs::remove_all(path_, ignored);
}

bool Elsewhere::Found() const {
  if (!found_) MESSAGE("skipped: /dev/shm is no other file system with 192 MiB free");
  return found_;
}

}  // namespace nowcalls::store
