#include "admin/output.h"

#include <poll.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

namespace nowcalls::admin {
namespace {

constexpr size_t kBufferBytes = 64 * 1024;

}  // namespace

void Output::Write(std::string_view bytes) {
  if (!status_.ok()) return;
  // One write for 64 KiB: ten million rows are some thousands of system calls.
  if (buffer_.capacity() < kBufferBytes) buffer_.reserve(kBufferBytes);
  buffer_ += bytes;
  if (buffer_.size() >= kBufferBytes) Flush();
}

void Output::Flush() {
  if (!status_.ok() || buffer_.empty()) return;
  const int error = sink_(buffer_);
  buffer_.clear();
  if (error == 0) return;
  // The first failure stays: all that is written later is dropped, and nothing is tried again.
  reader_gone_ = error == EPIPE;
  status_ = Status::IoError(std::string("writing the output failed: ") + std::strerror(error));
}

Output::Sink DescriptorSink(int descriptor) {
  return [descriptor](std::string_view bytes) {
    while (!bytes.empty()) {
      const ssize_t written = ::write(descriptor, bytes.data(), bytes.size());
      if (written >= 0) {
        bytes.remove_prefix(static_cast<size_t>(written));
      } else if (errno == EAGAIN || errno == EWOULDBLOCK) {
        // Another process that shares the open file has made it non-blocking.
        pollfd writable{descriptor, POLLOUT, 0};
        poll(&writable, 1, -1);
      } else if (errno != EINTR) {
        return errno;
      }
    }
    return 0;
  };
}

}  // namespace nowcalls::admin
