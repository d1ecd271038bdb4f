#include "admin/cluster_arguments.h"

#include <cstdint>

#include "base/option_values.h"

namespace nowcalls::admin {
namespace {

constexpr int64_t kTakeoverMs = 30'000;
constexpr int64_t kTakeoverMsMax = 3'600'000;

}  // namespace

CLI::App* AddHandover(CLI::App* cluster, Arguments* arguments) {
  CLI::App* const handover = cluster->add_subcommand(
      "handover", "Have another member serve, and say which; the writer goes on as a standby");
  handover->footer("");
  CLI::Option* const timeout =
      AddInteger<int64_t>(handover, "--timeout", "How long to wait for the next writer [30000]", 1,
                          kTakeoverMsMax, [=](int64_t ms) { arguments->timeout_ms = ms; })
          ->type_name("MS");
  // Of both commands this one runs last.
  cluster->callback([=] {
    const bool hands_over = handover->parsed();
    arguments->command = hands_over ? Command::kHandover : Command::kCluster;
    if (hands_over && timeout->empty() && cluster->get_option("--timeout")->empty()) {
      arguments->timeout_ms = kTakeoverMs;
    }
  });
  return handover;
}

}  // namespace nowcalls::admin
