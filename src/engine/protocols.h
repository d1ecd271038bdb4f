// Protocols: the protocol of a connection, by its first byte.
//
//   0x93, 0x94   MessagePack-RPC: an array of 3 or 4 (rpc/)
//   0x00..0x03   Sentinel's frames: the high byte of a length (sentinel/)
//
// Thread: loop.
#ifndef NOWCALLS_ENGINE_PROTOCOLS_H_
#define NOWCALLS_ENGINE_PROTOCOLS_H_

#include <memory>
#include <string>
#include <string_view>

#include "engine/protocol.h"

namespace nowcalls::engine {

namespace rpc {
struct Service;
}
namespace sentinel {
struct Service;
}

class Protocols {
 public:
  Protocols(rpc::Service* rpc, sentinel::Service* sentinel) : rpc_(rpc), sentinel_(sentinel) {}
  virtual ~Protocols() = default;

  // nullptr: empty, or no protocol begins so.
  virtual std::unique_ptr<Protocol> Make(std::string_view bytes);  // Virtual for tests.
  // Why this first byte is foreign; continues "connection HOST:PORT ".
  static std::string WhyNone(char first);

 private:
  rpc::Service* const rpc_;
  sentinel::Service* const sentinel_;
};

}  // namespace nowcalls::engine

#endif  // NOWCALLS_ENGINE_PROTOCOLS_H_
