#include "bench/contender.h"

#include <signal.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <sstream>
#include <stdexcept>
#include <utility>

#include "base/clock.h"
#include "bench/interruption.h"
#include "bench/redis_dialect.h"
#include "bench/redis_target.h"
#include "bench/resp.h"
#include "net/socket.h"
#include "support/rpc_client.h"
#include "support/tcp.h"

namespace nowcalls::compare {
namespace {

constexpr int64_t kStartMsMax = 300'000;  // Recovery of many tokens included.
constexpr int64_t kSettleMsMax = 300'000;
constexpr int64_t kAnswerMsMax = 2'000;
constexpr size_t kLogBytesShown = 600;
constexpr char kFillKey[] = "bench:flow:1000001";

}  // namespace

std::string ContenderName(ContenderKind kind) {
  switch (kind) {
    case ContenderKind::kNowcalls: return "nowcalls";
    case ContenderKind::kRedis: return "Redis";
    case ContenderKind::kNowcallsTls: return "nowcalls, TLS";
    case ContenderKind::kRedisTls: return "Redis, TLS";
  }
  return "";
}

std::string FindProgram(const std::string& name) {
  const char* path = std::getenv("PATH");
  std::istringstream folders(path == nullptr ? "" : path);
  for (std::string folder; std::getline(folders, folder, ':');) {
    std::string program = folder + "/" + name;
    if (::access(program.c_str(), X_OK) == 0) return program;
  }
  return "";
}

Contender::Contender(ContenderKind kind, std::string dir)
    : name_(ContenderName(kind)), dir_(std::move(dir)) {
  std::filesystem::create_directories(dir_ + "/data");
  if (kind != ContenderKind::kNowcallsTls && kind != ContenderKind::kRedisTls) return;
  const testing::Authority authority("CA of a benchmark");
  testing::WriteStringToFile(dir_ + "/ca.pem", authority.certificate());
  certificate_ =
      testing::WriteCertificate(dir_, "server", authority.Issue({.names = {{'I', "127.0.0.1"}}}));
}

std::vector<std::string> Contender::TlsWords() const {
  if (!certificate_) return {};
  return {"--tls-ca", dir_ + "/ca.pem"};
}

std::string Contender::LogEnd() const {
  const std::string log = testing::ReadFileToString(dir_ + "/server.log");
  return log.substr(log.size() - std::min(log.size(), kLogBytesShown));
}

double Contender::Start() {
  process_.reset();
  const std::vector<std::string> command = Command();
  const int64_t begin_ns = MonotonicNs();
  process_.emplace(
      testing::Process::Options{command, {}, dir_ + "/server.log", dir_ + "/server.log"});
  const bool answered = Await(kStartMsMax, [this] {
    if (Running()) return Answers();
    throw std::runtime_error(name_ + " ended while it started; its log ends with: " + LogEnd());
  });
  if (answered) return static_cast<double>(MonotonicNs() - begin_ns) / 1e9;
  throw std::runtime_error(name_ + " did not answer within " + std::to_string(kStartMsMax / 1000) +
                           " s of its start; its log ends with: " + LogEnd());
}

void Contender::Kill9() {
  process_->Signal(SIGKILL);
  process_->Wait();
}

NowcallsContender::NowcallsContender(ContenderKind kind, std::string dir)
    : Contender(kind, std::move(dir)) {}

std::vector<std::string> NowcallsContender::Command() {
  const std::string port_file = dir() + "/port";
  ::unlink(port_file.c_str());
  address_.clear();
  std::vector<std::string> command = {testing::ProductBinary("nowcalls-server"),
                                      "--listen",
                                      "127.0.0.1:0",
                                      "--port-file",
                                      port_file,
                                      "--data-dir",
                                      dir() + "/data",
                                      "--durability",
                                      "sync"};
  if (certificate()) {
    command.insert(command.end(),
                   {"--tls-cert", certificate()->certificate, "--tls-key", certificate()->key});
  }
  return command;
}

bool NowcallsContender::Answers() {
  const std::string port = testing::ReadFileToString(dir() + "/port");
  if (!port.ends_with('\n')) return false;
  address_ = "127.0.0.1:" + port.substr(0, port.size() - 1);
  testing::RpcClient client(address_);
  return client.Call("ping", testing::Json::array(), kAnswerMsMax).ok();
}

Json NowcallsContender::Info() const {
  testing::RpcClient client(address_);
  const testing::Reply reply = client.Call("info");
  if (!reply.ok()) throw std::runtime_error("nowcalls does not answer info: " + reply.ToString());
  return Json::parse(reply.result.dump());
}

uint64_t NowcallsContender::Tokens() { return Info().at("counts").at("tokens"); }

RedisContender::RedisContender(ContenderKind kind, std::string program, std::string dir)
    : Contender(kind, std::move(dir)), program_(std::move(program)) {}

std::string RedisContender::url() const {
  return "redis://127.0.0.1:" + std::to_string(tls_port_ != 0 ? tls_port_ : port_);
}

std::vector<std::string> RedisContender::Command() {
  port_ = testing::FreePort();
  std::vector<std::string> command = {
      program_, "--bind", "127.0.0.1",    "--port", std::to_string(port_), "--dir", dir() + "/data",
      "--save", "",       "--appendonly", "yes",    "--appendfsync",       "always"};
  if (certificate()) {
    tls_port_ = testing::FreePort();
    command.insert(command.end(), {"--tls-port", std::to_string(tls_port_), "--tls-cert-file",
                                   certificate()->certificate, "--tls-key-file", certificate()->key,
                                   "--tls-auth-clients", "no"});
  }
  return command;
}

std::string RedisContender::Ask(const std::string& command, int64_t timeout_ms) const {
  const int64_t deadline_ms = BoottimeMs() + timeout_ms;
  Result<net::Socket> socket =
      net::Socket::Connect(net::Endpoint::Tcp({"127.0.0.1", port_}), deadline_ms);
  if (!socket.ok() || !socket->Send(command, deadline_ms).ok()) return "";
  std::string input;
  while (socket->Receive(&input, deadline_ms).ok()) {
    std::string_view rest = input;
    bench::RespValue value;
    const bench::RespOutcome outcome = bench::TakeResp(&rest, &value);
    if (outcome == bench::RespOutcome::kIncomplete) continue;
    if (outcome == bench::RespOutcome::kInvalid) return "";
    if (value.kind == bench::RespKind::kInteger) return std::to_string(value.integer);
    return (value.kind == bench::RespKind::kError ? "-" : "") + std::string(value.text);
  }
  return "";
}

bool RedisContender::Answers() { return Ask(bench::RespCommand({"PING"}), kAnswerMsMax) == "PONG"; }

uint64_t RedisContender::Tokens() {
  const std::string count = Ask(bench::RespCommand({"ZCARD", kFillKey}), kAnswerMsMax);
  if (count.empty() || count.starts_with('-')) {
    throw std::runtime_error("Redis does not answer ZCARD " + std::string(kFillKey) + ": " + count);
  }
  return std::stoull(count);
}

void RedisContender::Settle() {
  const bool settled = Await(kSettleMsMax, [this] {
    const std::string info = Ask(bench::RespCommand({"INFO", "persistence"}), kAnswerMsMax);
    return bench::InfoField(info, "aof_rewrite_in_progress") == "0" &&
           bench::InfoField(info, "aof_rewrite_scheduled") == "0";
  });
  if (!settled) throw std::runtime_error("Redis does not finish rewriting its log: " + LogEnd());
}

}  // namespace nowcalls::compare
