// LineWriter: writes lines to a descriptor on its own thread.
//
// Thread: any. Lines leave in the order of Append. Beyond `bytes_max` buffered bytes newer lines
// are dropped. A line tells how many were dropped, or refused by the descriptor.
#ifndef NOWCALLS_SERVER_LOG_LINE_WRITER_H_
#define NOWCALLS_SERVER_LOG_LINE_WRITER_H_

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <thread>

namespace nowcalls::server {

class LineWriter {
 public:
  // The line, with its newline, that stands for `lines` lost ones. On any thread, and on two at
  // once.
  using LostNote = std::function<std::string(uint64_t lines)>;

  // `fd` stays open for ever: a stuck thread may use it.
  LineWriter(int fd, size_t bytes_max, LostNote lost_note);
  // Drops unwritten lines; see Flush.
  ~LineWriter();
  LineWriter(const LineWriter&) = delete;
  LineWriter& operator=(const LineWriter&) = delete;

  // Never waits. `line` ends with a newline. `urgent`: buffered beyond `bytes_max`.
  void Append(std::string_view line, bool urgent = false);

  // True: each line appended before was written or refused. False: not within `timeout_ms`.
  bool Flush(int64_t timeout_ms);

 private:
  struct State;
  static void Run(const std::shared_ptr<State>& state);

  const std::shared_ptr<State> state_;
  std::thread thread_;
};

}  // namespace nowcalls::server

#endif  // NOWCALLS_SERVER_LOG_LINE_WRITER_H_
