// TempDir: a fresh directory under $TMPDIR (or /tmp) that goes away with its object.
#ifndef NOWCALLS_SUPPORT_TEMP_DIR_H_
#define NOWCALLS_SUPPORT_TEMP_DIR_H_

#include <string>
#include <string_view>

namespace nowcalls::testing {

class TempDir {
 public:
  TempDir();  // Throws std::runtime_error when no directory can be made.
  ~TempDir();
  TempDir(const TempDir&) = delete;
  TempDir& operator=(const TempDir&) = delete;

  const std::string& path() const { return path_; }
  // path() / name; nothing is created.
  std::string Sub(std::string_view name) const { return path_ + "/" + std::string(name); }

 private:
  std::string path_;
};

}  // namespace nowcalls::testing

#endif  // NOWCALLS_SUPPORT_TEMP_DIR_H_
