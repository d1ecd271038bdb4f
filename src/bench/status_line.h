// StatusLine: a terminal line, written over until the work is done.
//
// Thread: one. Silent unless enabled.
#ifndef NOWCALLS_BENCH_STATUS_LINE_H_
#define NOWCALLS_BENCH_STATUS_LINE_H_

#include <functional>
#include <string>
#include <string_view>
#include <utility>

namespace nowcalls::bench {

class StatusLine {
 public:
  StatusLine(bool enabled, std::function<void(std::string_view)> write)
      : enabled_(enabled), write_(std::move(write)) {}
  ~StatusLine() { Erase(); }
  StatusLine(const StatusLine&) = delete;
  StatusLine& operator=(const StatusLine&) = delete;

  void Show(std::string_view text) {
    if (!enabled_) return;
    write_(std::string(kEraseLine) + std::string(text));
    visible_ = true;
  }
  void Erase() {
    if (visible_) write_(kEraseLine);
    visible_ = false;
  }

 private:
  // First column, erase to the end.
  static constexpr std::string_view kEraseLine = "\r\x1b[K";

  bool enabled_;
  std::function<void(std::string_view)> write_;
  bool visible_ = false;
};

}  // namespace nowcalls::bench

#endif  // NOWCALLS_BENCH_STATUS_LINE_H_
