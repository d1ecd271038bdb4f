// TempDir: a fresh directory under $TMPDIR (or /tmp) that goes away with its object.
//
// What is tried on a modelled disk is kept in memory where that can be: there the syncs of the real
// one prove nothing, and thousands of them take as long as it likes.
#ifndef NOWCALLS_SUPPORT_TEMP_DIR_H_
#define NOWCALLS_SUPPORT_TEMP_DIR_H_

#include <string>
#include <string_view>

namespace nowcalls::testing {

class TempDir {
 public:
  enum class Place {
    kDisk,
    kMemory,  // Under /dev/shm if that has 32 MiB free and $TMPDIR is not set, else as kDisk.
  };
  // Throws std::runtime_error when no directory can be made.
  explicit TempDir(Place place = Place::kDisk);
  ~TempDir();
  TempDir(const TempDir&) = delete;
  TempDir& operator=(const TempDir&) = delete;

  const std::string& path() const { return path_; }
  // path() / name; nothing is created.
  std::string Sub(std::string_view name) const { return path_ + "/" + std::string(name); }

 private:
  std::string path_;
};

// Copies the directories and files below `from`, and no sockets: a server that was killed leaves
// one. Throws std::filesystem::filesystem_error.
void CopyTree(const std::string& from, const std::string& to);

}  // namespace nowcalls::testing

#endif  // NOWCALLS_SUPPORT_TEMP_DIR_H_
