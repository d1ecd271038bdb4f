// LineWriter: writes lines to a descriptor from a thread of its own, so that nobody who logs waits
// for whoever reads them: a pipe that is full, a terminal that is held, a disk that hangs.
//
// Thread: any. Lines come out in the order of Append. While the descriptor takes nothing, up to
// `bytes_max` of them are kept and the newest are dropped: what led to the stall is told, nobody
// can wash it out with noise, and the gap is one place, at which a line says how many are missing.
// Lines that the descriptor refuses (a full disk, a reader that is gone) are dropped and counted as
// well.
//
// The thread may be stuck in a write for ever, so it is never waited for without a bound; what it
// works on lives as long as it does.
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
  // Leaves what is not written yet unwritten; see Flush.
  ~LineWriter();
  LineWriter(const LineWriter&) = delete;
  LineWriter& operator=(const LineWriter&) = delete;

  // Never waits. `line` ends with a newline. An `urgent` one is kept also beyond `bytes_max`: for
  // the last words of a process.
  void Append(std::string_view line, bool urgent = false);

  // True: all that was appended before has been written, or refused. False: not within
  // `timeout_ms`.
  bool Flush(int64_t timeout_ms);

 private:
  struct State;
  static void Run(const std::shared_ptr<State>& state);

  const std::shared_ptr<State> state_;
  std::thread thread_;
};

}  // namespace nowcalls::server

#endif  // NOWCALLS_SERVER_LINE_WRITER_H_
