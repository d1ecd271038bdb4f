// Output: buffered bytes on their way to stdout, which remembers the first failure.
//
// Thread: one. A full disk or a reader that went away must neither be overlooked nor be reported
// once a row: after a failure everything else is dropped and status() says why, so that a walk over
// ten million tokens ends at once.
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
  // Writes all of `bytes`; 0, or the errno of what went wrong.
  using Sink = std::function<int(std::string_view bytes)>;

  explicit Output(Sink sink) : sink_(std::move(sink)) {}

  void Write(std::string_view bytes);
  void Flush();

  // How many characters a line has room for; 0: any number. Tables are made to fit.
  size_t columns() const { return columns_; }
  void SetColumns(size_t columns) { columns_ = columns; }

  // A person reads it, with a terminal that obeys what it is sent.
  bool on_terminal() const { return on_terminal_; }
  void SetOnTerminal(bool on_terminal) { on_terminal_ = on_terminal; }

  // kIoError once a write has failed.
  const Status& status() const { return status_; }
  // The failure was EPIPE: whoever read our output, `head` for example, has seen enough.
  bool reader_gone() const { return reader_gone_; }

 private:
  Sink sink_;
  std::string buffer_;
  size_t columns_ = 0;
  bool on_terminal_ = false;
  Status status_;
  bool reader_gone_ = false;
};

// A sink that writes to a file descriptor, which stays the caller's. SIGPIPE must be ignored.
Output::Sink DescriptorSink(int descriptor);

}  // namespace nowcalls::admin

#endif  // NOWCALLS_ADMIN_OUTPUT_H_
