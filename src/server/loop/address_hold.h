// AddressHold: the listen address, bound before the ledger is touched.
//
// Thread: any; before the server serves. It does not listen.
#ifndef NOWCALLS_SERVER_LOOP_ADDRESS_HOLD_H_
#define NOWCALLS_SERVER_LOOP_ADDRESS_HOLD_H_

#include <utility>

#include "base/host_port.h"
#include "nowcalls/status.h"

namespace nowcalls::server {

class AddressHold {
 public:
  // kIoError: names address and reason. kInvalidArgument: the host has no address. Of port 0 only
  // the host is held.
  static Result<AddressHold> Take(const HostPort& name);

  AddressHold(AddressHold&& other) noexcept : fd_(std::exchange(other.fd_, -1)) {}
  AddressHold& operator=(AddressHold&& other) noexcept {
    std::swap(fd_, other.fd_);
    return *this;
  }
  ~AddressHold();

 private:
  explicit AddressHold(int fd) : fd_(fd) {}

  int fd_;
};

}  // namespace nowcalls::server

#endif  // NOWCALLS_SERVER_LOOP_ADDRESS_HOLD_H_
