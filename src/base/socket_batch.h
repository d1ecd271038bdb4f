// SocketBatch: many receives or sends with one system call.
//
// Thread: one at a time.
//
// Where a system call takes as long as what it does for a message of some hundred bytes, and longer
// under some hypervisors, a loop with hundreds of sockets spends its time entering and leaving the
// kernel. io_uring takes a list of calls instead. Here none of them is left to the kernel to be
// done later: sockets are not waited for, so all are done when the call returns.
//
// Where the system has no io_uring, or allows none (kernel.io_uring_disabled, the default profile
// of container engines), or has no memory for it, each is a system call of its own.
#ifndef NOWCALLS_BASE_SOCKET_BATCH_H_
#define NOWCALLS_BASE_SOCKET_BATCH_H_

#include <sys/types.h>

#include <cstddef>
#include <memory>
#include <span>
#include <string>

namespace nowcalls {

// As recv(2) and send(2) of a connected socket, without waiting whatever its mode is. Of bytes that
// do not fit into the socket a send leaves some or all.
struct SocketReceive {
  int fd = -1;
  char* to = nullptr;
  size_t size = 0;
  ssize_t result = 0;  // How many bytes came; 0: the end of the stream; or -errno.
};

struct SocketSend {
  int fd = -1;
  const char* from = nullptr;
  size_t size = 0;
  ssize_t result = 0;  // How many bytes went; or -errno, without a SIGPIPE.
};

class SocketBatch {
 public:
  // So many calls go into one system call.
  static constexpr unsigned kTogether = 128;

  enum class Means { kBest, kSystemCalls };

  explicit SocketBatch(Means means = Means::kBest);
  ~SocketBatch();
  SocketBatch(const SocketBatch&) = delete;
  SocketBatch& operator=(const SocketBatch&) = delete;

  // Do all of them, in their order, and set their results.
  void Receive(std::span<SocketReceive> receives);
  void Send(std::span<SocketSend> sends);

  // Why each is a system call of its own, from the system; empty: it is not, or was not asked for.
  const std::string& why_alone() const { return why_alone_; }

 private:
  struct Ring;

  template <typename Call>
  void Do(std::span<Call> calls);
  template <typename Call>
  size_t DoTogether(std::span<Call> calls, int* error);

  void CloseRing(int error);

  std::unique_ptr<Ring> ring_;  // nullptr: there is none.
  std::string why_alone_;
};

}  // namespace nowcalls

#endif  // NOWCALLS_BASE_SOCKET_BATCH_H_
