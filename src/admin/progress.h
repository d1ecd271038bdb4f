// Progress: a terminal line about long work.
//
// Thread: one. Silent unless enabled; erased at the end.
#ifndef NOWCALLS_ADMIN_PROGRESS_H_
#define NOWCALLS_ADMIN_PROGRESS_H_

#include <cstdint>
#include <functional>
#include <string>
#include <string_view>

#include "base/clock.h"

namespace nowcalls::admin {

class Progress {
 public:
  // `what`: the noun, such as "tokens".
  Progress(bool enabled, std::string what, std::function<void(std::string_view)> write,
           std::function<int64_t()> clock_ms = BoottimeMs);
  ~Progress() { Erase(); }
  Progress(const Progress&) = delete;
  Progress& operator=(const Progress&) = delete;

  // Cheap: reads the clock once in kStride calls.
  void Count() {
    ++count_;
    if (enabled_ && count_ % kStride == 0) Update();
  }
  // 0: unknown.
  void set_total(uint64_t total) { total_ = total; }

  void Erase();

  static constexpr uint64_t kStride = 256;

 private:
  void Update();

  const bool enabled_;
  const std::string what_;
  const std::function<void(std::string_view)> write_;
  const std::function<int64_t()> clock_ms_;
  uint64_t count_ = 0;
  uint64_t total_ = 0;
  int64_t started_ms_;
  int64_t shown_ms_;
  bool visible_ = false;
};

}  // namespace nowcalls::admin

#endif  // NOWCALLS_ADMIN_PROGRESS_H_
