#include "support/temp_dir.h"

#include <stdlib.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include <cstdint>
#include <filesystem>
#include <stdexcept>
#include <system_error>

namespace nowcalls::testing {

namespace {

constexpr char kMemoryDir[] = "/dev/shm";

bool HasMemoryDir() {
  constexpr uint64_t kFreeMin = 32 * 1024 * 1024;
  struct statvfs system {};
  return ::access(kMemoryDir, W_OK | X_OK) == 0 && statvfs(kMemoryDir, &system) == 0 &&
         uint64_t{system.f_bavail} * system.f_frsize >= kFreeMin;
}

std::string BaseOf(TempDir::Place place) {
  const char* told = getenv("TMPDIR");
  if (told != nullptr && *told != '\0') return told;
  return place == TempDir::Place::kMemory && HasMemoryDir() ? kMemoryDir : "/tmp";
}

}  // namespace

TempDir::TempDir(Place place) : path_(BaseOf(place) + "/nowcalls-test-XXXXXX") {
  if (mkdtemp(path_.data()) == nullptr) throw std::runtime_error("cannot make " + path_);
}

TempDir::~TempDir() {
  std::error_code ignored;
  std::filesystem::remove_all(path_, ignored);
}

void CopyTree(const std::string& from, const std::string& to) {
  namespace fs = std::filesystem;
  fs::create_directory(to);
  for (const auto& entry : fs::recursive_directory_iterator(from)) {
    const fs::path copy = to / fs::relative(entry.path(), from);
    if (entry.is_directory()) fs::create_directory(copy);
    if (entry.is_regular_file()) fs::copy_file(entry.path(), copy);
  }
}

}  // namespace nowcalls::testing
