#include "client/call.h"

#include <algorithm>
#include <bit>

#include "base/bytes.h"
#include "base/limits.h"
#include "nowcalls/flow_name.h"
#include "nowcalls/param.h"
#include "wire/client_messages.h"

namespace nowcalls::client {
namespace {

template <typename T>
ParamValue Number(ParamType type, T value) {
  ParamValue number(type, std::string(sizeof(T), '\0'));
  StoreBigEndian(number.bytes.data(), value);
  return number;
}

}  // namespace

std::optional<ParamValue> ParamOf(const Value& value) {
  if (const auto* text = std::get_if<std::string>(&value)) {
    return ParamValue(ParamType::kString, *text);
  }
  if (const auto* flag = std::get_if<bool>(&value)) {
    return Number(ParamType::kBoolean, static_cast<uint8_t>(*flag ? 1 : 0));
  }
  if (const auto* real = std::get_if<double>(&value)) {
    return Number(ParamType::kDouble, std::bit_cast<uint64_t>(*real));
  }
  if (const auto* number = std::get_if<int64_t>(&value)) {
    // To a rule int 5 and long 5 are two values, so the type follows from the number alone.
    if (*number >= INT32_MIN && *number <= INT32_MAX) {
      return Number(ParamType::kInt, static_cast<uint32_t>(*number));
    }
    return Number(ParamType::kLong, static_cast<uint64_t>(*number));
  }
  return std::nullopt;
}

void AcquireCall::Encode(uint32_t msgid, int64_t now_ms, wire::OutputBuffer* out) const {
  if (all) return EncodeAll(msgid, now_ms, out);
  const FlowDemand& demand = demands.front();
  const std::optional<ParamValue> param = ParamOf(demand.param);
  wire::AcquireParams params{.flow_id = demand.flow.value,
                             .count = demand.count,
                             .prioritized = options.prioritized,
                             .wait_ms = WaitLeft(now_ms),
                             .request_id = request_id,
                             .hold_ms = static_cast<uint64_t>(options.hold.count()),
                             .flow_name = NameOfFlow(demand.flow)};
  if (param) params.param = param->view();
  wire::EncodeAcquireRequest(msgid, params, out);
}

void AcquireCall::EncodeAll(uint32_t msgid, int64_t now_ms, wire::OutputBuffer* out) const {
  std::vector<std::optional<ParamValue>> values;  // Of the views in params.
  values.reserve(demands.size());
  wire::AcquireAllParams params{.items = {},
                                .prioritized = options.prioritized,
                                .wait_ms = WaitLeft(now_ms),
                                .request_id = request_id,
                                .hold_ms = static_cast<uint64_t>(options.hold.count())};
  for (const FlowDemand& demand : demands) {
    wire::AcquireAllParams::Item item{.flow_id = demand.flow.value,
                                      .count = demand.count,
                                      .rate = demand.rate,
                                      .flow_name = NameOfFlow(demand.flow)};
    values.push_back(ParamOf(demand.param));
    if (values.back()) item.param = values.back()->view();
    params.items.push_back(item);
  }
  wire::EncodeAcquireAllRequest(msgid, params, out);
}

std::optional<uint64_t> AcquireCall::WaitLeft(int64_t now_ms) const {
  if (!options.wait) return std::nullopt;
  // At least 1 ms: an acquire that is repeated without a wait would lose its place in the queue.
  const int64_t asked_ms = options.wait->count();
  if (asked_ms == 0) return 0;
  return static_cast<uint64_t>(std::clamp<int64_t>(begun_ms + asked_ms - now_ms, 1, kWaitMsMax));
}

void RateCall::Encode(uint32_t msgid, int64_t /*now_ms*/, wire::OutputBuffer* out) const {
  if (!by_value) {
    return wire::EncodeRateRequest(msgid,
                                   {.flow_id = flow.value,
                                    .count = options.count,
                                    .prioritized = options.prioritized,
                                    .flow_name = NameOfFlow(flow)},
                                   out);
  }
  // All values before the first view: a growing vector would move their bytes.
  std::vector<ParamValue> params;
  for (const Value& value : values) {
    if (auto param = ParamOf(value)) params.push_back(*std::move(param));
  }
  std::vector<Param> views;
  views.reserve(params.size());
  for (const ParamValue& param : params) views.push_back(param.view());
  wire::EncodeValueRateRequest(
      msgid, {.flow_id = flow.value, .count = options.count, .flow_name = NameOfFlow(flow)}, views,
      out);
}

void ReleaseCall::Encode(uint32_t msgid, int64_t /*now_ms*/, wire::OutputBuffer* out) const {
  wire::EncodeReleaseRequest(msgid, held->grant.token.value, outcome, out);
}

void KeepCall::Encode(uint32_t msgid, int64_t /*now_ms*/, wire::OutputBuffer* out) const {
  wire::EncodeTokenRequest(msgid, wire::Method::kKeep, held->grant.token.value, out);
}

void CancelCall::Encode(uint32_t msgid, int64_t /*now_ms*/, wire::OutputBuffer* out) const {
  wire::EncodeCancelRequest(msgid, request_id, out);
}

void PingCall::Encode(uint32_t msgid, int64_t /*now_ms*/, wire::OutputBuffer* out) const {
  wire::EncodePlainRequest(msgid, wire::Method::kPing, out);
}

// Two rules behind the cursor flow_id - 1: a flow id may have one of each kind. A name is told as
// it is: servers that know names look it up.
void RuleCall::Encode(uint32_t msgid, int64_t /*now_ms*/, wire::OutputBuffer* out) const {
  if (const std::string_view name = NameOfFlow(FlowId(flow_id)); !name.empty()) {
    return wire::EncodeRulesListRequest(
        msgid, {.name_space = {}, .page = {.limit = 2}, .flow_name = name}, out);
  }
  const uint64_t before = flow_id > 1 ? static_cast<uint64_t>(flow_id - 1) : 0;
  wire::EncodeRulesListRequest(msgid, {.name_space = {}, .page = {.limit = 2, .cursor = before}},
                               out);
}

}  // namespace nowcalls::client
