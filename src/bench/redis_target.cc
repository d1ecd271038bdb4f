#include "bench/redis_target.h"

#include <netdb.h>

#include <utility>

#include "base/clock.h"
#include "bench/resp.h"
#include "client/dial.h"

namespace nowcalls::bench {
namespace {

constexpr int64_t kTimeoutMs = 5000;

// The strings of an answer; of an integer its digits.
Result<std::vector<std::string>> Ask(net::Socket* socket, const std::string& command) {
  const int64_t deadline_ms = BoottimeMs() + kTimeoutMs;
  NOWCALLS_RETURN_IF_ERROR(socket->Send(command, deadline_ms));
  std::string input;
  std::vector<std::string> values;
  size_t taken_bytes = 0;
  // `due` values are to come: an array replaces itself by its elements.
  for (int64_t due = 1; due > 0;) {
    std::string_view rest = input;
    rest.remove_prefix(taken_bytes);
    RespValue value;
    const RespOutcome outcome = TakeResp(&rest, &value);
    if (outcome == RespOutcome::kInvalid) return Status::Unavailable("it does not speak RESP2");
    if (outcome == RespOutcome::kIncomplete) {
      NOWCALLS_RETURN_IF_ERROR(socket->Receive(&input, deadline_ms));
      continue;
    }
    taken_bytes = input.size() - rest.size();
    --due;
    if (value.kind == RespKind::kError) return Status::InvalidArgument(std::string(value.text));
    if (value.kind == RespKind::kArray) {
      due += value.integer;
    } else if (value.kind == RespKind::kInteger) {
      values.push_back(std::to_string(value.integer));
    } else {
      values.emplace_back(value.text);
    }
  }
  return values;
}

// The value of one setting; "unknown" where the server does not tell.
std::string AskSetting(net::Socket* socket, std::string_view name) {
  const Result<std::vector<std::string>> pair = Ask(socket, RespCommand({"CONFIG", "GET", name}));
  return pair.ok() && pair->size() == 2 ? (*pair)[1] : "unknown";
}

}  // namespace

std::string InfoField(const std::string& info, const std::string& name) {
  const std::string head = "\n" + name + ":";
  const size_t at = info.find(head);
  if (at == std::string::npos) return "";
  const size_t begin = at + head.size();
  return info.substr(begin, info.find_first_of("\r\n", begin) - begin);
}

Result<net::Socket> RedisTarget::Connect() const {
  const net::Endpoint endpoint = net::Endpoint::Tcp(options_.target.peer);
  const auto new_channel = client::ChannelsTo(endpoint, options_.security.tls);
  if (!new_channel.ok()) return new_channel.status();
  Result<net::Socket> socket =
      net::Socket::Connect(endpoint, BoottimeMs() + kTimeoutMs, getaddrinfo, (*new_channel)());
  if (socket.ok()) return socket;
  return Status::Unavailable("cannot reach " + options_.target.ToString() + ": " +
                             socket.status().message() + "; is redis-server running there?");
}

Status RedisTarget::ReadFacts(net::Socket* socket) {
  const Result<std::vector<std::string>> info = Ask(socket, RespCommand({"INFO", "server"}));
  if (!info.ok()) return info.status();
  facts_.version = info->empty() ? "" : InfoField(info->front(), "redis_version");
  const std::string append_only = AskSetting(socket, "appendonly");
  facts_.durability = "appendonly " + append_only;
  if (append_only == "yes")
    facts_.durability += ", appendfsync " + AskSetting(socket, "appendfsync");
  if (options_.replicas > 0) facts_.durability += ", WAIT " + std::to_string(options_.replicas);
  return {};
}

Status RedisTarget::Prepare(const std::vector<Flow>& flows) {
  Result<net::Socket> socket = Connect();
  if (!socket.ok()) return socket.status();
  NOWCALLS_RETURN_IF_ERROR(ReadFacts(&*socket).WithContext(options_.target.ToString()));
  const Result<std::vector<std::string>> sha =
      Ask(&*socket, RespCommand({"SCRIPT", "LOAD", kAcquireScript}));
  if (!sha.ok()) return sha.status().WithContext("the script cannot be loaded");
  if (sha->size() != 1) return Status::Unavailable("SCRIPT LOAD answered no name of the script");
  for (const Flow& flow : flows) {
    keys_.push_back(RedisDialect::KeyOf(options_.name_space, flow.id));
  }
  setup_ = std::make_shared<RedisDialect::Setup>(flows, options_.name_space, sha->front(),
                                                 RandomBits128()[0], options_.replicas);
  return {};
}

std::unique_ptr<Dialect> RedisTarget::NewDialect(uint32_t lanes) {
  return std::make_unique<RedisDialect>(setup_, lanes);
}

Status RedisTarget::CleanUp() {
  if (keys_.empty()) return {};
  Result<net::Socket> socket = Connect();
  if (!socket.ok()) return socket.status();
  std::string command;
  AppendRespArray(keys_.size() + 1, &command);
  // One command deletes all sets with their tokens.
  AppendRespBulk("DEL", &command);
  for (const std::string& key : keys_) AppendRespBulk(key, &command);
  keys_.clear();
  return Ask(&*socket, command).status().WithContext("the keys could not be deleted");
}

}  // namespace nowcalls::bench
