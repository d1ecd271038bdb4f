// nowcalls-client-bench: acquires and releases through the client library, to be compared with
// `nowcalls-bench --connections 1 --in-flight N` against the same server. The rule of --flow must
// be there. It prints operations a second; an acquire and its release are two.
#include <CLI/CLI.hpp>
#include <atomic>
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <functional>
#include <string>

#include "base/clock.h"
#include "nowcalls/client.h"
#include "support/poll_until.h"

namespace nowcalls {
namespace {

uint64_t RunBlocking(Client* client, FlowId flow, int64_t end_ns) {
  uint64_t operations = 0;
  while (MonotonicNs() < end_ns) {
    Acquired acquired = client->Acquire(flow);
    if (!acquired || !acquired.permit.Release()) return 0;
    operations += 2;
  }
  return operations;
}

// Each release that is answered asks the next acquire.
class AsyncLoad {
 public:
  AsyncLoad(Client* client, FlowId flow, int64_t end_ns)
      : client_(client), flow_(flow), end_ns_(end_ns) {}

  uint64_t Run(int in_flight) {
    left_ = in_flight;
    for (int i = 0; i < in_flight; ++i) Next();
    testing::PollUntil(INT64_MAX / 2, [this] { return left_ == 0; });
    return operations_;
  }

 private:
  void Next() {
    if (MonotonicNs() >= end_ns_) {
      --left_;
      return;
    }
    client_->AcquireAsync(flow_, {}, [this](Acquired acquired) {
      acquired.permit.ReleaseAsync([this](const Released& released) {
        if (released.ok()) operations_ += 2;
        Next();
      });
    });
  }

  Client* const client_;
  const FlowId flow_;
  const int64_t end_ns_;
  std::atomic<int> left_{0};
  std::atomic<uint64_t> operations_{0};
};

int Main(int argc, char** argv) {
  std::string address = "127.0.0.1:18730";
  int64_t flow = 1;
  int in_flight = 0;
  double seconds = 3;
  CLI::App app("Acquires and releases through the client library.");
  app.add_option("--server", address, "HOST:PORT")->capture_default_str();
  app.add_option("--flow", flow, "Whose rule is loaded")->capture_default_str();
  app.add_option("--in-flight", in_flight, "Asynchronous acquires; 0: one that blocks");
  app.add_option("--duration", seconds, "Seconds")->capture_default_str();
  CLI11_PARSE(app, argc, argv);

  ClientOptions options;
  options.addresses = {address};
  const auto client = Client::Start(options);
  if (!client.ok() || !(*client)->WaitConnected(std::chrono::seconds(5)).ok()) {
    std::fprintf(stderr, "cannot reach %s\n", address.c_str());
    return 69;
  }
  const int64_t begin_ns = MonotonicNs();
  const int64_t end_ns = begin_ns + static_cast<int64_t>(seconds * 1e9);
  const uint64_t operations = in_flight == 0
                                  ? RunBlocking(client->get(), FlowId(flow), end_ns)
                                  : AsyncLoad(client->get(), FlowId(flow), end_ns).Run(in_flight);
  const double took = static_cast<double>(MonotonicNs() - begin_ns) / 1e9;
  std::printf("%.0f operations/s, %.1f us each\n", static_cast<double>(operations) / took,
              1e6 * took / static_cast<double>(operations));
  return operations == 0 ? 1 : 0;
}

}  // namespace
}  // namespace nowcalls

int main(int argc, char** argv) { return nowcalls::Main(argc, argv); }
