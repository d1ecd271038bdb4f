#include "net/socket_batch.h"

#include <liburing.h>
#include <sys/socket.h>

#include <algorithm>
#include <cerrno>
#include <system_error>

#include "base/check.h"

namespace nowcalls::net {
namespace {

constexpr int kReceiveFlags = MSG_DONTWAIT;
constexpr int kSendFlags = MSG_DONTWAIT | MSG_NOSIGNAL;

void DoAlone(SocketReceive* receive) {
  const ssize_t size = recv(receive->fd, receive->to, receive->size, kReceiveFlags);
  receive->result = size < 0 ? -errno : size;
}

void DoAlone(SocketSend* send) {
  const ssize_t size = ::send(send->fd, send->from, send->size, kSendFlags);
  send->result = size < 0 ? -errno : size;
}

void Prepare(const SocketReceive& receive, io_uring_sqe* entry) {
  io_uring_prep_recv(entry, receive.fd, receive.to, receive.size, kReceiveFlags);
}

void Prepare(const SocketSend& send, io_uring_sqe* entry) {
  io_uring_prep_send(entry, send.fd, send.from, send.size, kSendFlags);
}

}  // namespace

struct SocketBatch::Ring {
  io_uring queues{};
  bool open = false;

  Ring() = default;
  Ring(const Ring&) = delete;
  Ring& operator=(const Ring&) = delete;
  ~Ring() {
    if (open) io_uring_queue_exit(&queues);
  }

  // 0, or -errno.
  int Open() {
    const int error = io_uring_queue_init(kTogether, &queues, 0);
    if (error != 0) return error;
    open = true;
    // Kernels had rings before they knew these.
    const std::unique_ptr<io_uring_probe, void (*)(io_uring_probe*)> probe(
        io_uring_get_probe_ring(&queues), io_uring_free_probe);
    const bool known = probe != nullptr &&
                       io_uring_opcode_supported(probe.get(), IORING_OP_RECV) != 0 &&
                       io_uring_opcode_supported(probe.get(), IORING_OP_SEND) != 0;
    return known ? 0 : -EOPNOTSUPP;
  }
};

SocketBatch::SocketBatch(Means means) {
  if (means == Means::kSystemCalls) return;
  ring_ = std::make_unique<Ring>();
  const int error = ring_->Open();
  if (error != 0) CloseRing(error);
}

SocketBatch::~SocketBatch() = default;

void SocketBatch::CloseRing(int error) {
  ring_.reset();
  why_alone_ = std::generic_category().message(-error);
}

void SocketBatch::Receive(std::span<SocketReceive> receives) { Do(receives); }

void SocketBatch::Send(std::span<SocketSend> sends) { Do(sends); }

template <typename Call>
void SocketBatch::Do(std::span<Call> calls) {
  // Happy path: lists of kTogether, each one system call. One call alone is cheaper without the
  // ring.
  while (ring_ != nullptr && calls.size() > 1) {
    const size_t together = std::min<size_t>(calls.size(), kTogether);
    int error = 0;
    const size_t done = DoTogether(calls.first(together), &error);
    // The kernel had no memory for a list and will have none for the next. What was not begun, and
    // all later calls, are made alone.
    if (done < together) CloseRing(error);
    calls = calls.subspan(done);
  }
  for (Call& call : calls) DoAlone(&call);
}

// Returns how many were done; the others were not begun, for the reason of `error`, -errno.
template <typename Call>
size_t SocketBatch::DoTogether(std::span<Call> calls, int* error) {
  // First the whole list is written. The ring has kTogether entries, and none is in use between two
  // calls.
  io_uring* const queues = &ring_->queues;
  for (size_t i = 0; i < calls.size(); ++i) {
    io_uring_sqe* const entry = io_uring_get_sqe(queues);
    NOWCALLS_CHECK(entry != nullptr);
    Prepare(calls[i], entry);
    entry->user_data = i;
  }
  // Then the kernel takes it. The flags forbid waiting, so each call is done or refused on the way.
  size_t begun = 0;
  while (begun < calls.size()) {
    const int taken = io_uring_submit(queues);
    if (taken == -EINTR) continue;
    *error = taken == 0 ? -EAGAIN : taken;
    if (taken <= 0) break;
    begun += static_cast<size_t>(taken);
  }
  // Last the results: user_data tells whose each is. Those of all that were begun must be taken, or
  // the next list would find them.
  for (size_t done = 0; done < begun; ++done) {
    io_uring_cqe* end = nullptr;
    int waited = 0;
    do {
      waited = io_uring_wait_cqe(queues, &end);
    } while (waited == -EINTR);
    NOWCALLS_CHECK(waited == 0);
    calls[end->user_data].result = end->res;
    io_uring_cqe_seen(queues, end);
  }
  return begun;
}

}  // namespace nowcalls::net
