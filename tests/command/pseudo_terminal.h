// PseudoTerminal: a program that runs on a terminal of its own, as the leader of its session.
//
// Thread: that of the test. The program gets SIGKILL when the object goes.
#ifndef NOWCALLS_COMMAND_PSEUDO_TERMINAL_H_
#define NOWCALLS_COMMAND_PSEUDO_TERMINAL_H_

#include <sys/types.h>

#include <string>
#include <vector>

namespace nowcalls::testing {

class PseudoTerminal {
 public:
  explicit PseudoTerminal(std::vector<std::string> argv);
  ~PseudoTerminal();
  PseudoTerminal(const PseudoTerminal&) = delete;
  PseudoTerminal& operator=(const PseudoTerminal&) = delete;

  void Press(const std::string& keys) const;
  // What the program writes, behind what was found before, has the text.
  bool Shows(const std::string& text);
  bool Echoes() const;
  void HangUp();  // The line is gone.
  // As of waitpid.
  int Wait() const;
  void Signal(int signal) const;

 private:
  pid_t pid_ = -1;
  int terminal_ = -1;
  std::string seen_;
};

}  // namespace nowcalls::testing

#endif  // NOWCALLS_COMMAND_PSEUDO_TERMINAL_H_
