#include "command/pseudo_terminal.h"

#include <doctest/doctest.h>
#include <poll.h>
#include <pty.h>
#include <signal.h>
#include <sys/wait.h>
#include <termios.h>
#include <unistd.h>

#include "support/poll_until.h"

namespace nowcalls::testing {

PseudoTerminal::PseudoTerminal(std::vector<std::string> argv) {
  const winsize size{.ws_row = 20, .ws_col = 100, .ws_xpixel = 0, .ws_ypixel = 0};
  std::vector<char*> words;
  for (std::string& word : argv) words.push_back(word.data());
  words.push_back(nullptr);
  pid_ = forkpty(&terminal_, nullptr, nullptr, &size);
  if (pid_ == 0) {
    execv(words[0], words.data());
    _exit(127);
  }
}

PseudoTerminal::~PseudoTerminal() {
  kill(pid_, SIGKILL);
  waitpid(pid_, nullptr, 0);
  HangUp();
}

void PseudoTerminal::Press(const std::string& keys) const {
  REQUIRE(write(terminal_, keys.data(), keys.size()) == static_cast<ssize_t>(keys.size()));
}

bool PseudoTerminal::Shows(const std::string& text) {
  const bool shown = PollUntil(kPatienceMs, [&] {
    pollfd readable{terminal_, POLLIN, 0};
    char bytes[4096];
    while (poll(&readable, 1, 0) > 0) {
      const ssize_t size = read(terminal_, bytes, sizeof(bytes));
      if (size <= 0) break;
      seen_.append(bytes, static_cast<size_t>(size));
    }
    return seen_.find(text) != std::string::npos;
  });
  if (shown) {
    seen_.erase(0, seen_.find(text) + text.size());
  } else {
    MESSAGE("the terminal shows: " << seen_);
  }
  return shown;
}

bool PseudoTerminal::Echoes() const {
  termios now{};
  tcgetattr(terminal_, &now);
  return (now.c_lflag & ECHO) != 0;
}

void PseudoTerminal::HangUp() {
  if (terminal_ >= 0) close(terminal_);
  terminal_ = -1;
}

int PseudoTerminal::Wait() const {
  int status = -1;
  CHECK(PollUntil(kPatienceMs, [&] { return waitpid(pid_, &status, WNOHANG) == pid_; }));
  return status;
}

void PseudoTerminal::Signal(int signal) const { kill(pid_, signal); }

}  // namespace nowcalls::testing
