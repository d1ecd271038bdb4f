#include "support/small_disk.h"

#include <doctest/doctest.h>
#include <fcntl.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include <stdexcept>
#include <utility>

namespace nowcalls::testing {

SmallDisk::SmallDisk(std::string path) : path_(std::move(path)) { mkdir(path_.c_str(), 0700); }

SmallDisk::~SmallDisk() {
  if (mounted_) umount2(path_.c_str(), MNT_DETACH);
}

bool SmallDisk::Mount(const std::string& size) {
  mounted_ = mount("tmpfs", path_.c_str(), "tmpfs", 0, ("size=" + size).c_str()) == 0;
  if (!mounted_) MESSAGE("skipped: only root may mount a file system");
  return mounted_;
}

bool SmallDisk::Grow(const std::string& size) const {
  return mount("tmpfs", path_.c_str(), "tmpfs", MS_REMOUNT, ("size=" + size).c_str()) == 0;
}

bool SmallDisk::MakeReadOnly() const {
  return mount("tmpfs", path_.c_str(), "tmpfs", MS_REMOUNT | MS_RDONLY, nullptr) == 0;
}

void SmallDisk::FillUpTo(uint64_t left_bytes) const {
  const int fd = open(FillPath().c_str(), O_WRONLY | O_CREAT | O_CLOEXEC, 0600);
  struct stat fill {};
  bool filled = fd >= 0 && fstat(fd, &fill) == 0;
  if (filled) {
    const auto more = static_cast<off_t>(FreeBytes()) - static_cast<off_t>(left_bytes);
    filled = more > 0 ? posix_fallocate(fd, fill.st_size, more) == 0
                      : ftruncate(fd, fill.st_size + more) == 0;
  }
  if (fd >= 0) close(fd);
  if (!filled) throw std::runtime_error("cannot fill " + path_);
}

void SmallDisk::RemoveFill() const { unlink(FillPath().c_str()); }

uint64_t SmallDisk::FreeBytes() const {
  struct statvfs stat {};
  if (statvfs(path_.c_str(), &stat) != 0) throw std::runtime_error("cannot look at " + path_);
  return static_cast<uint64_t>(stat.f_bfree) * stat.f_frsize;
}

}  // namespace nowcalls::testing
