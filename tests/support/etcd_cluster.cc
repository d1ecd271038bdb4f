#include "support/etcd_cluster.h"

#include <signal.h>

#include <stdexcept>

#include "support/poll_until.h"
#include "support/tcp.h"

namespace nowcalls::testing {

EtcdCluster::EtcdCluster(size_t nodes, const Network* network, size_t first_host) {
  for (size_t node = 0; node < nodes; ++node) {
    const size_t host = first_host + node;
    const std::string address = network == nullptr ? "127.0.0.1" : Network::Address(host);
    nodes_.push_back(
        {.clients = {address, FreePort()},
         .peers = {address, FreePort()},
         .launcher = network == nullptr ? std::vector<std::string>() : network->Launcher(host)});
  }
  for (size_t node = 0; node < nodes; ++node) Start(node);
  if (!PollUntil(kPatienceMs, [this] { return Leader().has_value(); })) {
    throw std::runtime_error("etcd elects no leader: " + ReadFileToString(dir_.Sub("0.log")));
  }
}

std::vector<HostPort> EtcdCluster::addresses() const {
  std::vector<HostPort> all;
  for (const Node& node : nodes_) all.push_back(node.clients);
  return all;
}

std::string EtcdCluster::endpoints() const {
  std::string all;
  for (const Node& node : nodes_) all += (all.empty() ? "" : ",") + node.clients.ToString();
  return all;
}

void EtcdCluster::Kill(size_t node) {
  nodes_[node].process->Signal(SIGKILL);
  nodes_[node].process->Wait();
  nodes_[node].process.reset();
}

// The times of elections are etcd's own.
void EtcdCluster::Start(size_t node) {
  std::string all;
  for (size_t i = 0; i < nodes_.size(); ++i) {
    all += (i == 0 ? "" : ",") + std::to_string(i) + "=http://" + nodes_[i].peers.ToString();
  }
  const std::string name = std::to_string(node);
  const std::string clients = "http://" + nodes_[node].clients.ToString();
  const std::string peers = "http://" + nodes_[node].peers.ToString();
  Process::Options options;
  options.argv = nodes_[node].launcher;
  options.argv.insert(options.argv.end(),
                      {"/usr/bin/etcd", "--name", name, "--data-dir", dir_.Sub(name)});
  for (const auto& [flag, value] :
       std::vector<std::pair<std::string, std::string>>{{"--listen-client-urls", clients},
                                                        {"--advertise-client-urls", clients},
                                                        {"--listen-peer-urls", peers},
                                                        {"--initial-advertise-peer-urls", peers},
                                                        {"--initial-cluster", all},
                                                        {"--snapshot-count", "1000"}}) {
    options.argv.push_back(flag);
    options.argv.push_back(value);
  }
  options.stderr_path = dir_.Sub(name + ".log");
  nodes_[node].process.emplace(options);
}

std::optional<size_t> EtcdCluster::Leader() const {
  for (size_t node = 0; node < nodes_.size(); ++node) {
    if (!nodes_[node].process) continue;
    // {"header":{...,"member_id":"1",...},...,"leader":"1",...}
    const std::string status = Ask(node, "/v3/maintenance/status", "{}");
    const auto value_of = [&](const std::string& name) {
      const size_t at = status.find("\"" + name + "\":\"");
      if (at == std::string::npos) return std::string();
      const size_t begin = at + name.size() + 4;
      return status.substr(begin, status.find('"', begin) - begin);
    };
    const std::string leader = value_of("leader");
    if (!leader.empty() && leader == value_of("member_id")) return node;
  }
  return std::nullopt;
}

void EtcdCluster::SetNoSpace(bool on) const {
  const std::string action = on ? "ACTIVATE" : "DEACTIVATE";
  const std::string json = R"({"action":")" + action + R"(","memberID":"1","alarm":"NOSPACE"})";
  const bool taken = PollUntil(kPatienceMs, [&] {
    for (size_t node = 0; node < nodes_.size(); ++node) {
      if (!nodes_[node].process) continue;
      // {"alarms":[...]}, or {} once the last one is off.
      const std::string answer = Ask(node, "/v3/maintenance/alarm", json);
      if (answer.starts_with("{") && !Contains(answer, "error")) return true;
    }
    return false;
  });
  if (!taken) throw std::runtime_error("etcd does not take an alarm");
}

// Empty: there was no answer in time.
std::string EtcdCluster::Ask(size_t node, const std::string& path, const std::string& json) const {
  return RunProgram({"/usr/bin/curl", "-s", "-m", "1", "-d", json,
                     "http://" + nodes_[node].clients.ToString() + path})
      .out;
}

}  // namespace nowcalls::testing
