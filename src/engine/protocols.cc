#include "engine/protocols.h"

#include <cstdint>

#include "engine/rpc/rpc_protocol.h"

namespace nowcalls::engine {
namespace {

constexpr uint8_t kSentinelByteMax = 0x03;

}  // namespace

std::unique_ptr<Protocol> Protocols::Make(std::string_view bytes) {
  if (bytes.empty() || !rpc::RpcProtocol::BeginsWith(bytes.front())) return nullptr;
  return std::make_unique<rpc::RpcProtocol>(rpc_);
}

std::string Protocols::WhyNone(char first) {
  const auto byte = static_cast<uint8_t>(first);
  if (byte <= kSentinelByteMax) return "speaks Sentinel's protocol, which is not supported yet";
  constexpr char kDigits[] = "0123456789abcdef";
  return std::string("does not speak MessagePack-RPC: a message begins with byte 0x") +
         kDigits[byte >> 4] + kDigits[byte & 15];
}

}  // namespace nowcalls::engine
