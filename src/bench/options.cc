#include "bench/options.h"

#include "base/text.h"
#include "net/endpoint.h"

namespace nowcalls::bench {
namespace {

constexpr std::string_view kNowcallsScheme = "nowcalls://";
constexpr std::string_view kRedisScheme = "redis://";

}  // namespace

std::string TargetAddress::ToString() const {
  const std::string_view scheme = kind == TargetKind::kRedis ? kRedisScheme : kNowcallsScheme;
  return std::string(scheme) + peer.ToString();
}

std::string TargetAddress::Servers() const {
  std::string all = peer.ToString();
  for (const HostPort& other : others) all += "," + other.ToString();
  return all;
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
  const Result<std::vector<net::Endpoint>> servers = net::ParseServers(rest);
  if (!servers.ok()) return servers.status();
  if (target.kind == TargetKind::kRedis && servers->size() > 1) {
    return Status::InvalidArgument("several addresses are for a nowcalls:// target, a cluster");
  }
  for (const net::Endpoint& server : *servers) {
    if (server.is_unix()) return Status::InvalidArgument(Quoted(rest) + " is no HOST:PORT");
    target.others.push_back(server.tcp);
  }
  target.peer = target.others.front();
  target.others.erase(target.others.begin());
  return target;
}

}  // namespace nowcalls::bench
