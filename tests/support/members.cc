#include "support/members.h"

#include <sys/stat.h>

#include <stdexcept>

#include "support/poll_until.h"
#include "support/tcp.h"

namespace nowcalls::testing {

Members::Members(size_t count, const std::vector<std::string>& arguments) {
  etcd_.emplace();
  Add(count, etcd_->address().ToString(), arguments);
}

Members::Members(size_t count, const std::string& endpoints,
                 const std::vector<std::string>& arguments) {
  Add(count, endpoints, arguments);
}

void Members::Add(size_t count, const std::string& endpoints,
                  const std::vector<std::string>& arguments) {
  const std::string url = "etcd://" + endpoints + "/test";
  for (size_t number = 0; number < count; ++number) {
    const std::string dir = dir_.Sub("member-" + std::to_string(number));
    mkdir(dir.c_str(), 0700);
    ports_.push_back(FreePort());
    ServerOptions options{.arguments = {"--cluster", url}, .port = ports_.back()};
    options.arguments.insert(options.arguments.end(), arguments.begin(), arguments.end());
    members_.push_back(std::make_unique<ServerProcess>(dir, options));
  }
}

std::string Members::address(size_t number) const {
  return "127.0.0.1:" + std::to_string(ports_[number]);
}

void Members::StartAll() {
  members_[0]->Start();
  for (size_t number = 1; number < count(); ++number) {
    members_[number]->StartWithoutWaiting();
    if (!members_[number]->LogHas(address(number) + " stands by: ")) {
      throw std::runtime_error("no standby:\n" + Logs());
    }
  }
}

bool Members::Serves(size_t number) {
  return members_[number]->Running() && RpcClient(address(number)).Call("ping").ok();
}

size_t Members::AwaitWriter(size_t other) {
  size_t writer = SIZE_MAX;
  PollUntil(kPatienceMs, [&] {
    for (size_t number = 0; number < count(); ++number) {
      if (number != other && Serves(number)) writer = number;
    }
    return writer != SIZE_MAX;
  });
  if (writer == SIZE_MAX) throw std::runtime_error("no member serves:\n" + Logs());
  return writer;
}

RpcClient Members::Connect(size_t number, const std::string& client_id) {
  RpcClient client(address(number));
  const Reply reply = client.Call("hello", {1, "default", client_id});
  if (!reply.ok()) throw std::runtime_error("hello: " + reply.ToString() + "\n" + Logs());
  return client;
}

std::string Members::Logs() {
  std::string logs;
  for (const auto& member : members_) logs += member->log() + "----\n";
  return logs;
}

}  // namespace nowcalls::testing
