#include "server/log/line_writer.h"

#include <doctest/doctest.h>
#include <fcntl.h>
#include <poll.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdint>
#include <sstream>
#include <string>

#include "base/exit_codes.h"
#include "nowcalls/status.h"
#include "server/log/logging.h"
#include "support/poll_until.h"

namespace nowcalls::server {
namespace {

using testing::kPatienceMs;
using testing::PollUntil;

const std::string kLongLine = std::string(100'000, 'x') + "\n";

// A pipe that takes about a page before its reader has to read.
class Pipe {
 public:
  Pipe() {
    REQUIRE(pipe2(ends_, O_CLOEXEC) == 0);
    fcntl(ends_[1], F_SETPIPE_SZ, 4096);
    fcntl(ends_[0], F_SETFL, O_NONBLOCK);
  }
  ~Pipe() {
    CloseReader();
    close(ends_[1]);
  }
  Pipe(const Pipe&) = delete;
  Pipe& operator=(const Pipe&) = delete;

  int writer() const { return ends_[1]; }
  // Nothing is taken before the reader has read.
  bool IsFull() const {
    pollfd writable{ends_[1], POLLOUT, 0};
    return poll(&writable, 1, 0) == 0;
  }
  void CloseReader() {
    if (ends_[0] >= 0) close(ends_[0]);
    ends_[0] = -1;
  }
  void ReadSome() {
    char chunk[4096];
    ssize_t size = 0;
    while ((size = read(ends_[0], chunk, sizeof(chunk))) > 0) {
      text_.append(chunk, static_cast<size_t>(size));
    }
  }
  const std::string& text() const { return text_; }

 private:
  int ends_[2] = {-1, -1};
  std::string text_;
};

std::string Line(uint64_t number) { return "line " + std::to_string(number) + "\n"; }
std::string Lost(uint64_t lines) { return std::to_string(lines) + " lost\n"; }

// Lines 0 to `end` - 1, each followed by nothing else.
std::string LinesUpTo(uint64_t end) {
  std::string text;
  for (uint64_t i = 0; i < end; ++i) text += Line(i);
  return text;
}

TEST_CASE("lines are written in the order in which they were appended") {
  Pipe pipe;
  LineWriter writer(pipe.writer(), 1 << 20, Lost);
  for (uint64_t i = 0; i < 100; ++i) writer.Append(Line(i));
  CHECK(writer.Flush(kPatienceMs));
  pipe.ReadSome();
  CHECK(pipe.text() == LinesUpTo(100));
}

// How many lines the text accounts for, those that it says are lost included; fails the test when
// one is out of place.
uint64_t LinesAccountedFor(const std::string& text) {
  uint64_t next = 0;
  std::istringstream lines(text.substr(0, text.rfind('\n') + 1));
  for (std::string line; std::getline(lines, line);) {
    if (line.ends_with(" lost")) {
      next += std::stoull(line);
    } else {
      REQUIRE(line + "\n" == Line(next++));
    }
  }
  return next;
}

// The reader of a writer's pipe has stalled: the writer holds the rest of a line that is longer
// than the pipe and takes nothing more before the pipe is read.
void Stall(const Pipe& pipe, LineWriter* writer) {
  writer->Append(kLongLine);
  REQUIRE(PollUntil(kPatienceMs, [&] { return pipe.IsFull(); }));
}

TEST_CASE("a reader that stalls holds nobody up, and learns how many lines it missed where") {
  Pipe pipe;
  LineWriter writer(pipe.writer(), 10'000, Lost);
  Stall(pipe, &writer);
  uint64_t lines = 0;
  while (lines < 20'000) writer.Append(Line(lines++));
  CHECK_FALSE(writer.Flush(0));
  CHECK(PollUntil(kPatienceMs, [&] {
    pipe.ReadSome();
    return pipe.text().ends_with(" lost\n");
  }));
  REQUIRE(pipe.text().starts_with(kLongLine));
  const auto shown = [&] { return pipe.text().substr(kLongLine.size()); };
  CHECK(LinesAccountedFor(shown()) == lines);
  CHECK(shown().size() > 10'000 - Line(lines).size());
  CHECK(shown().size() <= 10'000 + Lost(lines).size());
  CHECK(writer.Flush(kPatienceMs));
  writer.Append(Line(lines++));
  CHECK(writer.Flush(kPatienceMs));
  pipe.ReadSome();
  CHECK(LinesAccountedFor(shown()) == lines);
}

TEST_CASE("an urgent line is kept however many wait, behind the line about what was lost") {
  Pipe pipe;
  LineWriter writer(pipe.writer(), 10'000, Lost);
  Stall(pipe, &writer);
  for (uint64_t i = 0; i < 20'000; ++i) writer.Append(Line(i));
  writer.Append("last words\n", /*urgent=*/true);
  REQUIRE(PollUntil(kPatienceMs, [&] {
    pipe.ReadSome();
    return pipe.text().ends_with(" lost\nlast words\n");
  }));
}

TEST_CASE("a single line may be longer than what is kept") {
  Pipe pipe;
  LineWriter writer(pipe.writer(), 10, Lost);
  const std::string line = std::string(1000, 'x') + "\n";
  writer.Append(line);
  CHECK(writer.Flush(kPatienceMs));
  pipe.ReadSome();
  CHECK(pipe.text() == line);
}

TEST_CASE("lines that the descriptor refuses are counted and do not stop the others") {
  const int full = open("/dev/full", O_WRONLY | O_CLOEXEC);
  REQUIRE(full >= 0);
  Pipe pipe;
  LineWriter writer(full, 1 << 20, Lost);
  for (uint64_t i = 0; i < 7; ++i) writer.Append(Line(i));
  CHECK(writer.Flush(kPatienceMs));
  REQUIRE(dup2(pipe.writer(), full) == full);  // As if the disk had room again.
  writer.Append("on again\n");
  CHECK(writer.Flush(kPatienceMs));
  pipe.ReadSome();
  CHECK(pipe.text() == "7 lost\non again\n");
  close(full);
}

TEST_CASE("a descriptor that is not to be waited for gets everything nevertheless") {
  Pipe pipe;
  REQUIRE(fcntl(pipe.writer(), F_SETFL, O_NONBLOCK) == 0);
  LineWriter writer(pipe.writer(), 1 << 20, Lost);
  for (uint64_t i = 0; i < 2'000; ++i) writer.Append(Line(i));
  REQUIRE(PollUntil(kPatienceMs, [&] {
    pipe.ReadSome();
    return pipe.text().size() == LinesUpTo(2'000).size();
  }));
  CHECK(pipe.text() == LinesUpTo(2'000));
}

// How a process ends that does `end`, with a stderr that takes nothing.
int ExitCodeWithFullStderr(void (*end)()) {
  Pipe pipe;
  const pid_t child = fork();
  REQUIRE(child >= 0);
  if (child == 0) {
    alarm(static_cast<unsigned>(kPatienceMs / 1000));  // Or it would hang with this test.
    fcntl(pipe.writer(), F_SETFL, O_NONBLOCK);
    while (write(pipe.writer(), "x", 1) > 0) {
    }
    fcntl(pipe.writer(), F_SETFL, 0);
    dup2(pipe.writer(), STDERR_FILENO);
    SetUpLogging(Severity::kInfo, LogFormat::kText);
    end();
    _exit(0);
  }
  int status = 0;
  REQUIRE(waitpid(child, &status, 0) == child);
  return WIFEXITED(status) ? WEXITSTATUS(status) : -WTERMSIG(status);
}

TEST_CASE("a process ends though nobody reads its stderr") {
  CHECK(ExitCodeWithFullStderr([] { DieOfIoError("commit", Status::IoError("EIO")); }) == 74);
  CHECK(ExitCodeWithFullStderr([] { DieOfIoError("scan", Status::Corruption("sst")); }) == 65);
  CHECK(ExitCodeWithFullStderr([] { ExitNow(kExitFailure); }) == 1);
  CHECK(ExitCodeWithFullStderr([] {
          for (int i = 0; i < 200'000; ++i) LogAt(Severity::kInfo, "noise");
          FlushLog();
          _exit(3);
        }) == 3);
}

}  // namespace
}  // namespace nowcalls::server
