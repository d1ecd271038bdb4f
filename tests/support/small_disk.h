// SmallDisk: a file system of its own, in memory, that a test can fill and empty.
//
// Thread: any. Only root may mount one, and not everywhere; a test that cannot says so and ends.
// It goes with its object, whoever still has files open in it.
#ifndef NOWCALLS_SUPPORT_SMALL_DISK_H_
#define NOWCALLS_SUPPORT_SMALL_DISK_H_

#include <cstdint>
#include <string>

namespace nowcalls::testing {

class SmallDisk {
 public:
  // Nothing is mounted yet; the directory is made.
  explicit SmallDisk(std::string path);
  ~SmallDisk();
  SmallDisk(const SmallDisk&) = delete;
  SmallDisk& operator=(const SmallDisk&) = delete;

  // False, with a line in the test's output: it cannot be had here. `size` as mount(8) has it:
  // "1m".
  bool Mount(const std::string& size);
  bool Grow(const std::string& size) const;
  bool MakeReadOnly() const;

  // Somebody else's file grows, or shrinks, until `left_bytes` are free. Throws std::runtime_error
  // when that cannot be done.
  void FillUpTo(uint64_t left_bytes) const;
  void RemoveFill() const;
  uint64_t FreeBytes() const;

 private:
  std::string FillPath() const { return path_ + "/somebody-elses-file"; }

  const std::string path_;
  bool mounted_ = false;
};

}  // namespace nowcalls::testing

#endif  // NOWCALLS_SUPPORT_SMALL_DISK_H_
