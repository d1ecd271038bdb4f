#include "bench/options.h"

#include "base/text.h"

namespace nowcalls::bench {
namespace {

constexpr std::string_view kNowcallsScheme = "nowcalls://";
constexpr std::string_view kRedisScheme = "redis://";

}  // namespace

std::string TargetAddress::ToString() const {
  const std::string_view scheme = kind == TargetKind::kRedis ? kRedisScheme : kNowcallsScheme;
  return std::string(scheme) + peer.ToString();
}

std::string_view LanguageName(Language language) {
  return language == Language::kSentinel ? "sentinel" : "messagepack-rpc";
}

std::string_view OperationName(Operation operation) {
  switch (operation) {
    case Operation::kAcquire: return "acquire";
    case Operation::kRequest: return "request";
    case Operation::kRequestParam: return "request-param";
  }
  return "";
}

Result<TargetAddress> ParseTarget(std::string_view text) {
  TargetAddress target;
  std::string_view rest = text;
  if (text.starts_with(kNowcallsScheme)) {
    rest.remove_prefix(kNowcallsScheme.size());
  } else if (text.starts_with(kRedisScheme)) {
    target.kind = TargetKind::kRedis;
    rest.remove_prefix(kRedisScheme.size());
  } else {
    return Status::InvalidArgument(Quoted(text) +
                                   " is neither nowcalls://HOST:PORT nor redis://HOST:PORT");
  }
  const Result<HostPort> peer = ParseHostPort(rest);
  if (!peer.ok()) return peer.status();
  if (peer->port == 0) return Status::InvalidArgument("port 0 is no server's");
  target.peer = *peer;
  return target;
}

}  // namespace nowcalls::bench
