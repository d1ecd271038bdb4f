// SocketBatch: many receives or sends with one system call (io_uring).
//
// Thread: one at a time. No call waits. Without io_uring each is a system call of its own.
#ifndef NOWCALLS_NET_SOCKET_BATCH_H_
#define NOWCALLS_NET_SOCKET_BATCH_H_

#include <sys/types.h>

#include <cstddef>
#include <memory>
#include <span>
#include <string>

namespace nowcalls::net {

// As recv(2) and send(2).
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
  // Calls in one system call.
  static constexpr unsigned kTogether = 128;

  enum class Means { kBest, kSystemCalls };

  explicit SocketBatch(Means means = Means::kBest);
  ~SocketBatch();
  SocketBatch(const SocketBatch&) = delete;
  SocketBatch& operator=(const SocketBatch&) = delete;

  // In order; they set the results.
  void Receive(std::span<SocketReceive> receives);
  void Send(std::span<SocketSend> sends);

  // The system's reason for single system calls; empty: none, or not asked for.
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

}  // namespace nowcalls::net

#endif  // NOWCALLS_NET_SOCKET_BATCH_H_
