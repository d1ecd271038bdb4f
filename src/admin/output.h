// Output: buffered bytes for stdout; remembers the first failure.
//
// Thread: one. After a failure all else is dropped.
#ifndef NOWCALLS_ADMIN_OUTPUT_H_
#define NOWCALLS_ADMIN_OUTPUT_H_

#include <cstddef>
#include <functional>
#include <string>
#include <string_view>

#include "nowcalls/status.h"

namespace nowcalls::admin {

class Output {
 public:
  // Returns 0 or the errno.
  using Sink = std::function<int(std::string_view bytes)>;

  explicit Output(Sink sink) : sink_(std::move(sink)) {}

  void Write(std::string_view bytes);
  void Flush();

  // Characters of a line; 0: any number.
  size_t columns() const { return columns_; }
  void SetColumns(size_t columns) { columns_ = columns; }

  bool on_terminal() const { return on_terminal_; }
  void SetOnTerminal(bool on_terminal) { on_terminal_ = on_terminal; }

  // kIoError: a write has failed.
  const Status& status() const { return status_; }
  // EPIPE: the reader, such as `head`, has seen enough.
  bool reader_gone() const { return reader_gone_; }

 private:
  Sink sink_;
  std::string buffer_;
  size_t columns_ = 0;
  bool on_terminal_ = false;
  Status status_;
  bool reader_gone_ = false;
};

// `descriptor` stays the caller's. REQUIRES: SIGPIPE is ignored.
Output::Sink DescriptorSink(int descriptor);

}  // namespace nowcalls::admin

#endif  // NOWCALLS_ADMIN_OUTPUT_H_
