// Terminal: the screen of `nowcalls top`; its destructor restores the screen.
//
// Thread: one. Reads SIGINT, SIGTERM, SIGHUP, SIGQUIT, SIGTSTP and SIGWINCH.
#ifndef NOWCALLS_COMMAND_TERMINAL_H_
#define NOWCALLS_COMMAND_TERMINAL_H_

#include <termios.h>

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

namespace nowcalls::command {

enum class Key : uint8_t { kNone, kUp, kDown, kEnter, kSort, kResize, kQuit };

class Terminal {
 public:
  // REQUIRES: standard input and output are a terminal.
  Terminal();
  ~Terminal();
  Terminal(const Terminal&) = delete;
  Terminal& operator=(const Terminal&) = delete;

  size_t rows() const { return rows_; }
  size_t columns() const { return columns_; }
  void Show(const std::vector<std::string>& lines) const;
  // The next key or signal; kNone: the time is over.
  Key Wait(int timeout_ms);

 private:
  void Enter() const;
  void Leave() const;
  void Measure();
  Key OfSignal();
  Key TakePressed();

  termios before_{};
  int signal_fd_ = -1;
  std::string pressed_;  // Keys that were read and not taken.
  size_t rows_ = 24;
  size_t columns_ = 80;
};

}  // namespace nowcalls::command

#endif  // NOWCALLS_COMMAND_TERMINAL_H_
