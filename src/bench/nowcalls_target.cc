#include "bench/nowcalls_target.h"

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>

#include "base/clock.h"
#include "base/limits.h"
#include "wire/json.h"

namespace nowcalls::bench {
namespace {

constexpr int64_t kTimeoutMs = 5000;
constexpr size_t kRulesPerNamespace = 256;
constexpr double kTimeoutFactorMax = 1000;  // Servers have 2 to 3.

Result<std::unique_ptr<client::BlockingClient>> Connect(const Options& options) {
  return client::BlockingClient::Connect({.address = options.target.Servers(),
                                          .timeout_ms = kTimeoutMs,
                                          .security = options.security});
}

// The value of `name`, members of members with dots between. kUnavailable: there is none, or it is
// not a T.
template <typename T>
Result<T> Member(const nlohmann::ordered_json& info, const std::string& name) {
  std::string path = "/" + name;
  std::replace(path.begin(), path.end(), '.', '/');
  try {
    return info.at(nlohmann::ordered_json::json_pointer(path)).get<T>();
  } catch (const nlohmann::json::exception&) {
    return Status::Unavailable("the server's info is not understood: its " + name +
                               " is missing or of another type");
  }
}

}  // namespace

std::string RulesJson(const std::vector<Flow>& flows, size_t begin, size_t end,
                      double timeout_factor, int grade, bool by_value) {
  auto rules = nlohmann::json::array();
  for (size_t i = begin; i < end; ++i) {
    const Flow& flow = flows[i];
    const auto lifetime_ms = static_cast<double>(flow.lifetime_ms);
    // The server multiplies by the factor: rounded up, no token ends before its time.
    const auto timeout_ms = static_cast<int64_t>(std::ceil(lifetime_ms / timeout_factor));
    const int64_t offline_ms =
        flow.client_offline_ms > 0 ? flow.client_offline_ms : flow.lifetime_ms;
    rules.push_back({{"resource", "nowcalls-bench:" + std::to_string(flow.id)},
                     {"grade", grade},
                     {"count", flow.level},
                     {"clusterMode", true},
                     {"clusterConfig",
                      {{"flowId", flow.id},
                       {"thresholdType", 1},
                       {"resourceTimeout", timeout_ms},
                       {"clientOfflineTime", std::min(offline_ms, kRuleTimeMsMax)}}}});
    if (by_value) rules.back().update({{"paramIdx", 0}, {"durationInSec", 1}});
  }
  return rules.dump();
}

Status NowcallsTarget::Prepare(const std::vector<Flow>& flows) {
  Result<std::unique_ptr<client::BlockingClient>> client = Connect(options_);
  if (!client.ok()) return client.status();
  NOWCALLS_RETURN_IF_ERROR(ReadFacts(client->get()));
  // A namespace for each message of rules. What was loaded before a failure is known to CleanUp.
  for (size_t begin = 0; begin < flows.size(); begin += kRulesPerNamespace) {
    const size_t end = std::min(begin + kRulesPerNamespace, flows.size());
    const std::string suffix = begin == 0 ? "" : "." + std::to_string(begin / kRulesPerNamespace);
    NOWCALLS_RETURN_IF_ERROR(
        LoadRules(options_.name_space + suffix,
                  RulesJson(flows, begin, end, timeout_factor_,
                            options_.operation == Operation::kAcquire ? 0 : 1, HasValues()),
                  client->get()));
  }
  auto setup = std::make_shared<NowcallsDialect::Setup>();
  setup->flows = flows;
  setup->name_space = options_.name_space;
  setup->secret = options_.security.secret;
  setup->operation = options_.operation;
  setup->values = Values();
  if (options_.command == Command::kFill) setup->client_id = kFillClientId;
  // Far from 0 and from the end.
  if (options_.request_ids) setup->next_request_id = RandomBits128()[0] >> 2 | uint64_t{1} << 61;
  setup_ = std::move(setup);
  return {};
}

std::vector<std::string> NowcallsTarget::Values() const {
  std::vector<std::string> values;
  const bool acquires = options_.operation == Operation::kAcquire;
  const uint32_t count = acquires ? options_.keys : options_.values;
  for (uint32_t i = 0; i < count; ++i) values.push_back("key-" + std::to_string(i));
  return values;
}

bool NowcallsTarget::HasValues() const {
  return options_.operation == Operation::kRequestParam || options_.keys > 0;
}

Status NowcallsTarget::ReadFacts(client::BlockingClient* client) {
  const Result<std::string_view> bytes = client->Info();
  if (!bytes.ok()) return bytes.status();
  const Result<nlohmann::ordered_json> info = wire::JsonFromMessagePack(*bytes);
  if (!info.ok()) {
    return Status::Unavailable("the server's info is not understood: " + info.status().message());
  }
  const auto version = Member<std::string>(*info, "version");
  if (!version.ok()) return version.status();
  const auto durability = Member<std::string>(*info, "ledger.durability");
  if (!durability.ok()) return durability.status();
  const auto timeout_factor = Member<double>(*info, "settings.resource_timeout_factor");
  if (!timeout_factor.ok()) return timeout_factor.status();
  facts_ = {*version, *durability};
  timeout_factor_ = *timeout_factor;
  // Written so that NaN is refused, too.
  if (!(timeout_factor_ >= 1 && timeout_factor_ <= kTimeoutFactorMax)) {
    return Status::Unavailable("the server's info is not understood: resource_timeout_factor is " +
                               std::to_string(timeout_factor_));
  }
  return {};
}

Status NowcallsTarget::LoadRules(const std::string& name_space, const std::string& json,
                                 client::BlockingClient* client) {
  const Result<uint64_t> loaded = client->RulesLoad(name_space, json);
  if (loaded.ok()) {
    loaded_.push_back(name_space);
    return {};
  }
  Status status =
      loaded.status().WithContext("the rules of namespace '" + name_space + "' cannot be loaded");
  if (status.code() != StatusCode::kAlreadyExists) return status;
  // Another source has rules in the namespace, or a flow id is taken.
  return {status.code(), status.message() +
                             "; choose a namespace that has no rules of its own with --namespace "
                             "NS, and flow ids that no other has with --first-flow ID"};
}

std::unique_ptr<Dialect> NowcallsTarget::NewDialect(uint32_t /*lanes*/) {
  if (options_.language == Language::kSentinel) return std::make_unique<SentinelDialect>(setup_);
  return std::make_unique<NowcallsDialect>(setup_);
}

Status NowcallsTarget::CleanUp() {
  if (loaded_.empty()) return {};
  Result<std::unique_ptr<client::BlockingClient>> client = Connect(options_);
  if (!client.ok()) return client.status();
  // An empty set takes a namespace's rules out of force. LeftBehind tells how to find those that
  // remain after a failure.
  for (; !loaded_.empty(); loaded_.pop_back()) {
    const Result<uint64_t> removed = (*client)->RulesLoad(loaded_.back(), "[]");
    if (!removed.ok()) {
      return removed.status().WithContext("the rules of namespace '" + loaded_.back() +
                                          "' could not be removed");
    }
  }
  return {};
}

}  // namespace nowcalls::bench
