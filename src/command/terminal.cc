#include "command/terminal.h"

#include <poll.h>
#include <signal.h>
#include <sys/ioctl.h>
#include <sys/signalfd.h>
#include <unistd.h>

#include <string_view>

namespace nowcalls::command {
namespace {

void Put(std::string_view bytes) {
  while (!bytes.empty()) {
    const ssize_t written = write(STDOUT_FILENO, bytes.data(), bytes.size());
    if (written <= 0) return;
    bytes.remove_prefix(static_cast<size_t>(written));
  }
}

sigset_t Signals() {
  sigset_t signals;
  sigemptyset(&signals);
  for (const int signal : {SIGINT, SIGTERM, SIGHUP, SIGQUIT, SIGTSTP, SIGWINCH}) {
    sigaddset(&signals, signal);
  }
  return signals;
}

}  // namespace

Terminal::Terminal() {
  // Signals before the screen changes: none can leave it changed.
  const sigset_t signals = Signals();
  sigprocmask(SIG_BLOCK, &signals, nullptr);
  signal_fd_ = signalfd(-1, &signals, SFD_CLOEXEC | SFD_NONBLOCK);
  tcgetattr(STDIN_FILENO, &before_);
  Measure();
  Enter();
}

Terminal::~Terminal() {
  Leave();
  if (signal_fd_ >= 0) close(signal_fd_);
}

// The other screen, without a cursor, and keys as they are pressed.
void Terminal::Enter() const {
  termios raw = before_;
  raw.c_lflag &= ~static_cast<tcflag_t>(ICANON | ECHO);
  raw.c_cc[VMIN] = 0;
  raw.c_cc[VTIME] = 0;
  tcsetattr(STDIN_FILENO, TCSANOW, &raw);
  Put("\x1b[?1049h\x1b[?25l");
}

void Terminal::Leave() const {
  Put("\x1b[?25h\x1b[?1049l");
  tcsetattr(STDIN_FILENO, TCSANOW, &before_);
}

void Terminal::Measure() {
  winsize size{};
  if (ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) != 0 || size.ws_row == 0 || size.ws_col == 0) return;
  rows_ = size.ws_row;
  columns_ = size.ws_col;
}

void Terminal::Show(const std::vector<std::string>& lines) const {
  // From the top, each line cleared behind its text, then the rest: no flicker.
  std::string frame = "\x1b[H";
  for (size_t i = 0; i < lines.size(); ++i) frame += (i > 0 ? "\r\n" : "") + lines[i] + "\x1b[K";
  Put(frame + "\x1b[J");
}

Key Terminal::Wait(int timeout_ms) {
  if (!pressed_.empty()) return TakePressed();
  pollfd fds[2] = {{STDIN_FILENO, POLLIN, 0}, {signal_fd_, POLLIN, 0}};
  if (poll(fds, 2, timeout_ms) <= 0) return Key::kNone;
  if (fds[1].revents != 0) return OfSignal();
  char bytes[64];
  const ssize_t size = read(STDIN_FILENO, bytes, sizeof(bytes));
  if (size <= 0) return Key::kQuit;  // The terminal is gone.
  pressed_.assign(bytes, static_cast<size_t>(size));
  return TakePressed();
}

// Arrows are three bytes.
Key Terminal::TakePressed() {
  const bool arrow = pressed_.starts_with("\x1b[") || pressed_.starts_with("\x1bO");
  const std::string key = pressed_.substr(0, arrow ? 3 : 1);
  pressed_.erase(0, key.size());
  // Escape alone may be the first byte of an arrow whose rest is late.
  if (key == "q") return Key::kQuit;
  if (key == "k" || (arrow && key.back() == 'A')) return Key::kUp;
  if (key == "j" || (arrow && key.back() == 'B')) return Key::kDown;
  if (key == "\n" || key == "\r" || key == " ") return Key::kEnter;
  return key == "s" ? Key::kSort : Key::kNone;
}

Key Terminal::OfSignal() {
  signalfd_siginfo signal{};
  if (read(signal_fd_, &signal, sizeof(signal)) != sizeof(signal)) return Key::kNone;
  // Ctrl-Z: the shell gets its screen, and this one returns when the process continues.
  if (signal.ssi_signo == SIGTSTP) {
    Leave();
    raise(SIGSTOP);
    Enter();
  } else if (signal.ssi_signo != SIGWINCH) {
    return Key::kQuit;
  }
  Measure();
  return Key::kResize;
}

}  // namespace nowcalls::command
