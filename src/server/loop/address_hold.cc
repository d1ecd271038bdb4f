#include "server/loop/address_hold.h"

#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cerrno>
#include <system_error>

#include "net/address.h"

namespace nowcalls::server {

Result<AddressHold> AddressHold::Take(const HostPort& name) {
  const Result<net::SocketAddress> address = net::Resolve(name);
  if (!address.ok()) return address.status();
  // SO_REUSEADDR here and on the Listener's socket: Linux lets both bind while only one of them
  // listens.
  AddressHold hold(socket(address->bytes.ss_family, SOCK_STREAM | SOCK_CLOEXEC, IPPROTO_TCP));
  const int on = 1;
  if (hold.fd_ >= 0 && setsockopt(hold.fd_, SOL_SOCKET, SO_REUSEADDR, &on, sizeof(on)) == 0 &&
      bind(hold.fd_, address->get(), address->size) == 0) {
    return hold;
  }
  return Status::IoError("cannot listen on " + name.ToString() + ": " +
                         std::generic_category().message(errno));
}

AddressHold::~AddressHold() {
  if (fd_ >= 0) close(fd_);
}

}  // namespace nowcalls::server
