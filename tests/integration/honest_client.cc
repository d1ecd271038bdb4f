#include "integration/honest_client.h"

#include "integration/calls.h"

namespace nowcalls::testing {

HonestClient::HonestClient(const std::string& address, int64_t flow_id)
    : thread_([this, address, flow_id] { Run(address, flow_id); }) {}

HonestClient::~HonestClient() { Finish(); }

bool HonestClient::MakesProgress() {
  constexpr uint64_t kRounds = 20;
  const uint64_t before = rounds_;
  return PollUntil(kPatienceMs, [&] { return rounds_ >= before + kRounds; });
}

std::string HonestClient::Finish() {
  stop_ = true;
  if (thread_.joinable()) thread_.join();
  return failure_;
}

void HonestClient::Run(const std::string& address, int64_t flow_id) {
  RpcClient client(address);
  const Reply hello = client.Call("hello", {1, "default", "honest"});
  if (!hello.ok()) {
    failure_ = "hello: " + hello.ToString();
    return;
  }
  while (!stop_) {
    const Reply granted = client.Call("acquire", {flow_id, 1});
    if (!granted.ok() || granted.result.at(0) != kStatusOk || granted.result.at(3) != 1) {
      failure_ = "acquire: " + granted.ToString();
      return;
    }
    const Reply released = client.Call("release", Json::array({granted.result.at(1)}));
    if (!released.ok() || released.result.at(0) != kStatusReleaseOk) {
      failure_ = "release: " + released.ToString();
      return;
    }
    ++rounds_;
  }
}

}  // namespace nowcalls::testing
