#include "net/socket_batch.h"

#include <doctest/doctest.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstdint>
#include <filesystem>
#include <fstream>
#include <optional>
#include <string>
#include <vector>

namespace nowcalls::net {
namespace {

// Two ends of a connection within the process.
class Pair {
 public:
  Pair() { REQUIRE(socketpair(AF_UNIX, SOCK_STREAM, 0, ends_.data()) == 0); }
  ~Pair() {
    for (int end : {0, 1}) Close(end);
  }
  Pair(const Pair&) = delete;
  Pair& operator=(const Pair&) = delete;

  int operator[](int end) const { return ends_[static_cast<size_t>(end)]; }
  void Close(int end) {
    int& fd = ends_[static_cast<size_t>(end)];
    if (fd >= 0) close(fd);
    fd = -1;
  }

 private:
  std::array<int, 2> ends_{-1, -1};
};

SocketSend SendOf(int fd, const std::string& bytes) { return {fd, bytes.data(), bytes.size(), 0}; }
SocketSend SendOf(int fd, std::string&& bytes) = delete;  // They are used after the call.

// More than go into one system call.
constexpr size_t kMany = 2 * SocketBatch::kTogether + 5;

void CheckAll(SocketBatch* batch) {
  const std::vector<Pair> pairs(kMany);
  std::vector<std::string> texts;
  for (size_t i = 0; i < kMany; ++i) texts.push_back("message " + std::to_string(i));
  std::vector<SocketSend> sends;
  for (size_t i = 0; i < kMany; ++i) sends.push_back(SendOf(pairs[i][0], texts[i]));
  batch->Send(sends);
  std::vector<std::array<char, 64>> buffers(kMany);
  std::vector<SocketReceive> receives;
  for (size_t i = 0; i < kMany; ++i) {
    CHECK(sends[i].result == static_cast<ssize_t>(texts[i].size()));
    receives.push_back({pairs[i][1], buffers[i].data(), buffers[i].size(), 0});
  }
  batch->Receive(receives);
  for (size_t i = 0; i < kMany; ++i) {
    REQUIRE(receives[i].result == static_cast<ssize_t>(texts[i].size()));
    CHECK(std::string(buffers[i].data(), texts[i].size()) == texts[i]);
  }
}

void CheckResults(SocketBatch* batch) {
  Pair quiet;
  Pair ended;
  Pair broken;
  Pair well;
  ended.Close(0);
  broken.Close(1);
  const std::string text = "hello";
  std::vector<SocketSend> sends = {SendOf(broken[0], text), SendOf(-1, text),
                                   SendOf(well[0], text)};
  batch->Send(sends);
  CHECK(sends[0].result == -EPIPE);  // Without a signal, which would end the test.
  CHECK(sends[1].result == -EBADF);
  CHECK(sends[2].result == 5);
  std::array<char, 4> buffer{};
  std::vector<SocketReceive> receives;
  for (const int fd : {quiet[1], ended[1], -1, well[1], well[1], well[1]}) {
    receives.push_back({fd, buffer.data(), buffer.size(), 0});
  }
  batch->Receive(receives);
  CHECK(receives[0].result == -EAGAIN);  // It is not waited for, though it is a socket that waits.
  CHECK(receives[1].result == 0);
  CHECK(receives[2].result == -EBADF);
  CHECK(receives[3].result == 4);
  CHECK(receives[4].result == 1);
  CHECK(receives[5].result == -EAGAIN);
}

void CheckFull(SocketBatch* batch) {
  Pair full;
  Pair other;
  const std::string much(4 * 1024 * 1024, 'x');
  const std::string little = "y";
  std::vector<SocketSend> sends = {SendOf(full[0], much), SendOf(full[0], much),
                                   SendOf(other[0], little)};
  batch->Send(sends);
  CHECK(sends[0].result > 0);
  CHECK(sends[0].result < static_cast<ssize_t>(much.size()));
  CHECK(sends[1].result == -EAGAIN);
  CHECK(sends[2].result == 1);
}

TEST_CASE("calls on many sockets are done with system calls of their own") {
  SocketBatch batch(SocketBatch::Means::kSystemCalls);
  CHECK(batch.why_alone().empty());  // It was asked for.
  CheckAll(&batch);
  CheckResults(&batch);
  CheckFull(&batch);
}

// How many calls the kernel was given through the rings of this process, as it tells of them;
// nullopt: there is no ring, or it does not.
std::optional<uint64_t> CallsOfRings() {
  std::optional<uint64_t> calls;
  for (const auto& entry : std::filesystem::directory_iterator("/proc/self/fd")) {
    std::error_code gone;
    if (std::filesystem::read_symlink(entry.path(), gone) != "anon_inode:[io_uring]") continue;
    std::ifstream info("/proc/self/fdinfo/" + entry.path().filename().string());
    for (std::string line; std::getline(info, line);) {
      if (line.starts_with("SqTail:")) calls = calls.value_or(0) + std::stoull(line.substr(7));
    }
  }
  return calls;
}

TEST_CASE("calls on many sockets are done with one system call where the system has that") {
  SocketBatch batch;
  if (!batch.why_alone().empty()) MESSAGE("skipped: io_uring: " << batch.why_alone());
  CheckAll(&batch);
  const std::optional<uint64_t> calls = CallsOfRings();
  CHECK(calls.has_value() <= batch.why_alone().empty());
  if (calls.has_value()) CHECK(*calls == 2 * kMany);  // None of them alone.
  CheckResults(&batch);
  CheckFull(&batch);
}

TEST_CASE("where no ring can be had, all is done without, and the reason is told") {
  const pid_t child = fork();
  REQUIRE(child >= 0);
  if (child == 0) {
    const rlimit none{3, 3};
    setrlimit(RLIMIT_NOFILE, &none);
    const SocketBatch batch;
    _exit(batch.why_alone() == "Too many open files" ? 0 : 1);
  }
  int status = 0;
  REQUIRE(waitpid(child, &status, 0) == child);
  if (!SocketBatch().why_alone().empty()) return;  // There is another reason here.
  CHECK(status == 0);
}

}  // namespace
}  // namespace nowcalls::net
