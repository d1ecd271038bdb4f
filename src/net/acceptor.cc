#include "net/acceptor.h"

#include <fcntl.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cerrno>
#include <system_error>

namespace nowcalls::net {
namespace {

int OpenSpare() { return open("/dev/null", O_RDONLY | O_CLOEXEC); }

}  // namespace

Acceptor::Acceptor() : spare_fd_(OpenSpare()) {}

Acceptor::~Acceptor() {
  if (spare_fd_ >= 0) close(spare_fd_);
}

Acceptor::Outcome Acceptor::Accept(int listening) {
  address_ = {};
  fd_ = accept4(listening, address_.get(), &address_.size, SOCK_NONBLOCK | SOCK_CLOEXEC);
  if (fd_ >= 0) return Outcome::kAccepted;
  const int error = errno;
  if (error == EAGAIN) return Outcome::kNobody;
  // Errors of one peer alone (accept(2)).
  if (error == ECONNABORTED || error == EINTR || error == EPROTO || error == EPERM) {
    return Outcome::kLost;
  }
  error_ = std::generic_category().message(error);
  if (error != EMFILE && error != ENFILE) return Outcome::kFailed;
  if (spare_fd_ < 0) return Outcome::kExhausted;
  // The spare descriptor is given up to accept and close the peer, which learns at once that it is
  // not served. Another thread may take the descriptor in between; then the peer waits. The system
  // looks for a descriptor first, so there may be no peer at all.
  close(spare_fd_);
  const int fd = accept4(listening, nullptr, nullptr, SOCK_CLOEXEC);
  if (fd >= 0) close(fd);
  spare_fd_ = OpenSpare();
  if (spare_fd_ < 0) return Outcome::kExhausted;
  return fd >= 0 ? Outcome::kTurnedAway : Outcome::kNobody;
}

bool Acceptor::Recover() {
  if (spare_fd_ < 0) spare_fd_ = OpenSpare();
  return spare_fd_ >= 0;
}

}  // namespace nowcalls::net
