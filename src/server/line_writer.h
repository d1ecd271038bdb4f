// LineWriter: writes lines to a descriptor from a thread of its own, so that no thread that logs
// waits for the reader of the log: a full pipe, a held terminal, a disk that hangs.
//
// Thread: any. Lines come out in the order of Append. While the descriptor takes nothing, up to
// `bytes_max` bytes of lines are kept and newer lines are dropped. So the lines that led to the
// stall survive, noise cannot wash them out, and the gap is one place, where a line says how many
// are missing. Lines that the descriptor refuses (a full disk, a reader that is gone) are dropped
// and counted too.
//
// The thread may be stuck in a write for ever, so every wait for it has a bound, and its state
// lives as long as it does.
#ifndef NOWCALLS_SERVER_LINE_WRITER_H_
#define NOWCALLS_SERVER_LINE_WRITER_H_

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
  // The line, with its newline, that stands for `lines` lost ones. Called on any thread, and on two
  // at once.
  using LostNote = std::function<std::string(uint64_t lines)>;

  // `fd` stays open for as long as the process lives: a thread that is stuck may still use it.
  LineWriter(int fd, size_t bytes_max, LostNote lost_note);
  // Lines that are not written yet stay unwritten; see Flush.
  ~LineWriter();
  LineWriter(const LineWriter&) = delete;
  LineWriter& operator=(const LineWriter&) = delete;

  // Never waits. `line` ends with a newline. An `urgent` one is kept also beyond `bytes_max`: for
  // the last words of a process.
  void Append(std::string_view line, bool urgent = false);

  // True: every line appended before has been written or refused. False: not within `timeout_ms`.
  bool Flush(int64_t timeout_ms);

 private:
  struct State;
  static void Run(const std::shared_ptr<State>& state);

  const std::shared_ptr<State> state_;
  std::thread thread_;
};

}  // namespace nowcalls::server

#endif  // NOWCALLS_SERVER_LINE_WRITER_H_
