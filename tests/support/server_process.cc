#include "support/server_process.h"

#include <unistd.h>

#include <csignal>
#include <stdexcept>

namespace nowcalls::testing {

ServerProcess::ServerProcess(std::string dir, ServerOptions options)
    : dir_(std::move(dir)), options_(std::move(options)) {}

std::vector<std::string> ServerProcess::Arguments() const {
  const std::string& other = options_.program;
  std::vector<std::string> arguments = options_.launcher;
  arguments.insert(arguments.end(),
                   {other.empty() ? ProductBinary("nowcalls-server") : other, "--listen",
                    options_.host + ":" + std::to_string(options_.port), "--port-file",
                    dir_ + "/port", "--data-dir", data_dir()});
  arguments.insert(arguments.end(), options_.arguments.begin(), options_.arguments.end());
  return arguments;
}

void ServerProcess::StartWithoutWaiting() {
  unlink((dir_ + "/port").c_str());
  address_.clear();
  process_.emplace(
      Process::Options{Arguments(), options_.environment, log_path(), log_path(), "/dev/null"});
}

bool ServerProcess::WaitUntilServing(int64_t timeout_ms) {
  PollUntil(timeout_ms, [this] {
    const std::string port = ReadFileToString(dir_ + "/port");
    if (port.ends_with('\n')) address_ = options_.host + ":" + port.substr(0, port.size() - 1);
    return !address_.empty() || !process_->Running();
  });
  return !address_.empty() && process_->Running();
}

void ServerProcess::Start() {
  StartWithoutWaiting();
  if (WaitUntilServing()) return;
  throw std::runtime_error("the server does not serve; its log: " + log());
}

bool ServerProcess::LogHas(const std::string& text) const {
  return PollUntil(kPatienceMs, [&] { return log().find(text) != std::string::npos; });
}

void ServerProcess::Kill9() {
  process_->Signal(SIGKILL);
  process_->Wait();
}

int ServerProcess::Terminate() {
  process_->Signal(SIGTERM);
  const auto ended = process_->Wait();
  if (!ended) throw std::runtime_error("the server ignores SIGTERM; its log: " + log());
  return *ended;
}

void ServerProcess::StayOnPort() {
  options_.port = static_cast<uint16_t>(std::stoi(address_.substr(address_.rfind(':') + 1)));
}

void ServerProcess::Restart() {
  Kill9();
  Start();
}

TestServer::TestServer(const Json& rules, ServerOptions options)
    : server_(dir_.path(), std::move(options)) {
  server_.Start();
  if (rules.is_null()) return;
  const Reply loaded = Connect().Call("rules_load", {"default", RuleSet(rules).dump()});
  if (!loaded.ok()) throw std::runtime_error("rules_load: " + loaded.ToString());
}

RpcClient TestServer::Connect() const { return RpcClient(address()); }

RpcClient TestServer::Connect(const std::string& client_id, const std::string& name_space) const {
  RpcClient client(address());
  const Reply reply = client.Call("hello", {1, name_space, client_id});
  if (!reply.ok()) throw std::runtime_error("hello: " + reply.ToString());
  return client;
}

Json RuleSet(const Json& rules) { return rules.is_object() ? Json::array({rules}) : rules; }

Json RuleJson(int64_t flow_id, double level, const Json& cluster) {
  Json rule = {
      {"resource", "resource-" + std::to_string(flow_id)},
      {"grade", 0},
      {"count", level},
      {"clusterMode", true},
      {"clusterConfig",
       {{"flowId", flow_id},
        {"thresholdType", 1},
        {"resourceTimeout", 60'000},
        {"clientOfflineTime", 60'000}}},
  };
  rule["clusterConfig"].update(cluster);
  return rule;
}

}  // namespace nowcalls::testing
