// Elsewhere: a directory on another file system than a test's, where no file of a ledger can have a
// second name.
#ifndef NOWCALLS_UNIT_STORE_ELSEWHERE_H_
#define NOWCALLS_UNIT_STORE_ELSEWHERE_H_

#include <string>

#include "support/temp_dir.h"

namespace nowcalls::store {

class Elsewhere {
 public:
  // On another one than `dir`.
  explicit Elsewhere(const testing::TempDir& dir);
  ~Elsewhere();
  Elsewhere(const Elsewhere&) = delete;
  Elsewhere& operator=(const Elsewhere&) = delete;

  // False: there is none with room for a small copy, and the test says that it is skipped.
  bool Found() const;
  std::string Sub(const std::string& name) const { return path_ + "/" + name; }

 private:
  std::string path_;
  bool found_ = false;
};

}  // namespace nowcalls::store

#endif  // NOWCALLS_UNIT_STORE_ELSEWHERE_H_
