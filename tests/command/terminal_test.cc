// `nowcalls exec` on a terminal: Ctrl-C, Ctrl-Z, fg, pipelines, lines that are hung up.
#include <doctest/doctest.h>
#include <sys/wait.h>

#include <string>

#include "command/exec_runs.h"
#include "command/pseudo_terminal.h"
#include "support/poll_until.h"
#include "support/temp_dir.h"

namespace nowcalls::testing {
namespace {

constexpr char kCtrlC[] = "\x03";
constexpr char kCtrlBackslash[] = "\x1c";
constexpr char kCtrlZ[] = "\x1a";

// An interactive shell where `e COMMAND` runs it by exec.
class Shell : public PseudoTerminal {
 public:
  Shell(const TestServer& server, const std::string& options)
      : PseudoTerminal({"/bin/bash", "--norc", "--noprofile", "--noediting", "-i"}) {
    Press("stty -echo; PS1=; e() { " + ProductBinary("nowcalls") + " exec --server " +
          server.address() + " --flow 7 " + options + " -- \"$@\"; }; echo rea''dy\n");
    REQUIRE(Shows("ready"));
  }
};

void CheckAllReleased(const TestServer& server) {
  CHECK(PollUntil(kPatienceMs, [&] { return InProgress(server) == 0; }));
}

}  // namespace

TEST_CASE("Ctrl-C ends a command and exec, and the shell sees that it was Ctrl-C") {
  TestServer server(RuleJson(7, 1));
  for (const std::string options : {"", "--on-lost kill", "--forward-to all"}) {
    CAPTURE(options);
    Shell shell(server, options);
    shell.Press("e cat; echo code $?\n");
    shell.Press("up\n");
    REQUIRE(shell.Shows("up"));
    shell.Press(kCtrlC);
    CheckAllReleased(server);  // cat reads no more.
    // An interactive shell drops the rest of a line whose command died of SIGINT.
    shell.Press("echo code $?\n");
    CHECK(shell.Shows("code 130"));
  }
}

TEST_CASE("a command that handles Ctrl-C gets it once, and goes on") {
  TestServer server(RuleJson(7, 1));
  Shell shell(server, "");
  shell.Press(
      "e sh -c 'n=0; trap \"n=\\$((n + 1)); echo int \\$n\" INT; trap \"echo total \\$n; exit 33\" "
      "QUIT; echo u''p; while :; do sleep 0.02; done'\n");
  REQUIRE(shell.Shows("up"));
  shell.Press(kCtrlC);
  CHECK(shell.Shows("int 1"));
  shell.Press(kCtrlC);
  CHECK(shell.Shows("int 2"));
  shell.Press(kCtrlBackslash);
  CHECK(shell.Shows("total 2"));
  shell.Press("echo code $?\n");
  CHECK(shell.Shows("code 33"));
  CheckAllReleased(server);
}

TEST_CASE("Ctrl-Z stops a command and exec, and fg goes on with both") {
  TestServer server(RuleJson(7, 1, {{"resourceTimeout", 60'000}, {"clientOfflineTime", 60'000}}));
  for (const std::string options : {"", "--on-lost kill"}) {
    CAPTURE(options);
    Shell shell(server, options);
    shell.Press("e sh -c 'echo u''p; read line; echo got $line; exit 33'\n");
    REQUIRE(shell.Shows("up"));
    shell.Press(kCtrlZ);
    CHECK(shell.Shows("Stopped"));
    shell.Press("echo the she''ll\n");
    CHECK(shell.Shows("the shell"));
    shell.Press("fg\n");
    CHECK(shell.Shows("exec"));
    shell.Press("a line\n");
    CHECK(shell.Shows("got a line"));
    shell.Press("echo code $?\n");
    CHECK(shell.Shows("code 33"));
    CheckAllReleased(server);
  }
}

TEST_CASE("a command in the background stops when it reads the terminal, until fg") {
  TestServer server(RuleJson(7, 1, {{"resourceTimeout", 60'000}, {"clientOfflineTime", 60'000}}));
  Shell shell(server, "");
  shell.Press("e sh -c 'read line; echo got $line' &\n");
  CHECK(PollUntil(kPatienceMs, [&] { return InProgress(server) == 1; }));
  shell.Press("until jobs | grep Stopped; do sleep 0.02; done\n");
  CHECK(shell.Shows("Stopped"));
  shell.Press("fg\n");
  CHECK(shell.Shows("read line"));
  shell.Press("a line\n");
  CHECK(shell.Shows("got a line"));
  CheckAllReleased(server);
}

TEST_CASE("the rest of a pipeline has the terminal, too") {
  TestServer server(RuleJson(7, 1));
  Shell shell(server, "");
  shell.Press("e echo 'from ex''ec' | sh -c 'cat; read line < /dev/tty; echo got $line'\n");
  CHECK(shell.Shows("from exec"));
  shell.Press("a line\n");
  CHECK(shell.Shows("got a line"));
}

TEST_CASE("a line that is hung up ends the command of an exec that leads its session") {
  TestServer server(RuleJson(7, 1));
  const TempDir dir;
  PseudoTerminal exec(ExecArgv(server.address(), {"--flow", "7"},
                               {"/bin/sh", "-c",
                                "trap 'echo hup > " + dir.Sub("out") +
                                    "; exit 33' HUP; echo up; while :; do sleep 0.02; done"}));
  REQUIRE(exec.Shows("up"));
  exec.HangUp();
  CHECK(exec.Wait() == W_EXITCODE(33, 0));
  CHECK(ReadFileToString(dir.Sub("out")) == "hup\n");
  CheckAllReleased(server);
}

}  // namespace nowcalls::testing
