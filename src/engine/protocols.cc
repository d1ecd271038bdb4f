#include "engine/protocols.h"

#include <cstdint>

#include "engine/rpc/rpc_protocol.h"
#include "engine/sentinel/sentinel_protocol.h"

namespace nowcalls::engine {

std::unique_ptr<Protocol> Protocols::Make(std::string_view bytes) {
  if (bytes.empty()) return nullptr;
  if (rpc::RpcProtocol::BeginsWith(bytes.front())) return std::make_unique<rpc::RpcProtocol>(rpc_);
  if (sentinel::SentinelProtocol::BeginsWith(bytes.front())) {
    return std::make_unique<sentinel::SentinelProtocol>(sentinel_);
  }
  return nullptr;
}

std::string Protocols::WhyNone(char first) {
  const auto byte = static_cast<uint8_t>(first);
  constexpr char kDigits[] = "0123456789abcdef";
  return std::string(
             "speaks neither MessagePack-RPC nor Sentinel's frames: it begins with byte 0x") +
         kDigits[byte >> 4] + kDigits[byte & 15];
}

}  // namespace nowcalls::engine
