#include "wire/flow_counters.h"

#include <algorithm>
#include <array>
#include <iterator>
#include <utility>

#include "nowcalls/call_outcome.h"
#include "nowcalls/types.h"
#include "wire/row_fields.h"

namespace nowcalls::wire {
namespace {

using Counts = uint64_t[kRefusedByCount];

template <auto kMember>
void PackNumber(const FlowCounters& counters, Packer* packer) {
  packer->pack_uint64(counters.*kMember);
}
template <auto kMember>
bool ReadNumber(std::string_view key, FieldReader* fields, FlowCounters* counters) {
  return fields->Required(key, &(counters->*kMember));
}

// Limits that refused nothing are left out: a flow meets few of its limits.
void PackLimits(const Counts& counts, Packer* packer) {
  packer->pack_map(static_cast<uint32_t>(std::count_if(std::begin(counts), std::end(counts),
                                                       [](uint64_t count) { return count > 0; })));
  for (size_t i = 0; i < std::size(counts); ++i) {
    if (counts[i] > 0) PackField(RefusedByName(static_cast<RefusedBy>(i)), counts[i], packer);
  }
}
// Words of a later server are skipped, here and below.
bool ReadLimits(std::string_view key, FieldReader* fields, Counts* counts) {
  return fields->ForEachKey(key, [&](std::string_view limit) {
    for (size_t i = 1; i < std::size(*counts); ++i) {
      if (limit == RefusedByName(static_cast<RefusedBy>(i))) {
        return fields->Required(limit, &(*counts)[i]);
      }
    }
    return fields->Skip(limit);
  });
}

// All reasons are sent, also those of 0.
void PackEnded(const FlowCounters& counters, Packer* packer) {
  packer->pack_map(kEndReasonCount - 1);
  for (size_t i = 1; i < kEndReasonCount; ++i) {
    PackField(EndReasonName(static_cast<EndReason>(i)), counters.ended[i], packer);
  }
}
bool ReadEnded(std::string_view key, FieldReader* fields, FlowCounters* counters) {
  return fields->ForEachKey(key, [&](std::string_view reason) {
    for (size_t i = 1; i < kEndReasonCount; ++i) {
      if (reason == EndReasonName(static_cast<EndReason>(i))) {
        return fields->Required(reason, &counters->ended[i]);
      }
    }
    return fields->Skip(reason);
  });
}

// Sent once a call has ended badly; then all outcomes but kOk are there.
bool HasOutcomes(const FlowCounters& counters) {
  return std::any_of(std::begin(counters.outcomes) + 1, std::end(counters.outcomes),
                     [](uint64_t count) { return count > 0; });
}
void PackOutcomes(const FlowCounters& counters, Packer* packer) {
  packer->pack_map(kCallOutcomeCount - 1);
  for (size_t i = 1; i < kCallOutcomeCount; ++i) {
    PackField(CallOutcomeName(static_cast<CallOutcome>(i)), counters.outcomes[i], packer);
  }
}
bool ReadOutcomes(std::string_view key, FieldReader* fields, FlowCounters* counters) {
  return fields->ForEachKey(key, [&](std::string_view outcome) {
    for (size_t i = 1; i < kCallOutcomeCount; ++i) {
      if (outcome == CallOutcomeName(static_cast<CallOutcome>(i))) {
        return fields->Required(outcome, &counters->outcomes[i]);
      }
    }
    return fields->Skip(outcome);
  });
}

// The members of a histogram's map. With a count of 0 `counted` and `upto` are left out.
using NamedNumber = std::pair<std::string_view, uint64_t FlowCounters::*>;
struct Times {
  std::span<const NamedNumber> always;
  std::span<const NamedNumber> counted;
  uint64_t FlowCounters::*count;
  CountsBelow FlowCounters::*upto;
};

constexpr auto kHeldAlways = std::to_array<NamedNumber>({
    {"p50", &FlowCounters::held_p50_ms},
    {"p90", &FlowCounters::held_p90_ms},
    {"p99", &FlowCounters::held_p99_ms},
    {"longest", &FlowCounters::held_longest_ms},
});
constexpr auto kHeldCounted = std::to_array<NamedNumber>({
    {"sum", &FlowCounters::held_sum_ms},
    {"count", &FlowCounters::held_count},
});
constexpr Times kHeld{kHeldAlways, kHeldCounted, &FlowCounters::held_count,
                      &FlowCounters::held_upto};

constexpr auto kWaitedCounted = std::to_array<NamedNumber>({
    {"p50", &FlowCounters::waited_p50_ms},
    {"p90", &FlowCounters::waited_p90_ms},
    {"p99", &FlowCounters::waited_p99_ms},
    {"sum", &FlowCounters::waited_sum_ms},
    {"count", &FlowCounters::waited_count},
});
constexpr Times kWaited{
    {}, kWaitedCounted, &FlowCounters::waited_count, &FlowCounters::waited_upto};

constexpr std::string_view kUpTo = "upto";

// The quantiles of held times are sent even without a count, as 0; sums and bounds only with one.
template <const Times& kTimes>
void PackTimes(const FlowCounters& counters, Packer* packer) {
  const auto pack = [&](std::span<const NamedNumber> numbers) {
    for (const auto& [name, member] : numbers) PackField(name, counters.*member, packer);
  };
  const bool counted = counters.*kTimes.count > 0;
  const size_t pairs = kTimes.always.size() + (counted ? kTimes.counted.size() + 1 : 0);
  packer->pack_map(static_cast<uint32_t>(pairs));
  pack(kTimes.always);
  if (!counted) return;
  pack(kTimes.counted);
  PackString(kUpTo, packer);
  packer->pack_array(kTimeBoundsMs.size());
  for (const uint64_t count : counters.*kTimes.upto) packer->pack_uint64(count);
}

// The counts are in the order of kTimeBoundsMs. Bounds that this version does not know are skipped.
bool ReadUpTo(FieldReader* fields, CountsBelow* upto) {
  size_t known = 0;
  return fields->ForEachElement(kUpTo, [&] {
    if (known == upto->size()) return fields->Skip("count");
    return fields->Required("count", &(*upto)[known++]);
  });
}

template <const Times& kTimes>
bool ReadTimes(std::string_view key, FieldReader* fields, FlowCounters* counters) {
  return fields->ForEachKey(key, [&](std::string_view name) {
    if (name == kUpTo) return ReadUpTo(fields, &(counters->*kTimes.upto));
    for (const auto& numbers : {kTimes.always, kTimes.counted}) {
      for (const auto& [known, member] : numbers) {
        if (name == known) return fields->Required(name, &(counters->*member));
      }
    }
    return fields->Skip(name);
  });
}

// A counter that is one number, always sent.
template <auto kMember>
constexpr FlowCounter Number(std::string_view key, std::string_view help) {
  return {key, help, PackNumber<kMember>, ReadNumber<kMember>};
}

// One row a counter: key, words of PROTOCOL.md, encoder, decoder, and when it is sent.
constexpr auto kTable = std::to_array<FlowCounter>({
    Number<&FlowCounters::granted>("granted",
                                   "also from the queue, also beyond a limit in shadow mode"),
    {"refused", "map of refused_by words to numbers; those that are 0 are left out",
     [](const FlowCounters& c, Packer* packer) { PackLimits(c.refused, packer); },
     [](std::string_view key, FieldReader* fields, FlowCounters* c) {
       return ReadLimits(key, fields, &c->refused);
     }},
    {"shadow_refused", "the same for what shadow mode granted nevertheless",
     [](const FlowCounters& c, Packer* packer) { PackLimits(c.shadow_refused, packer); },
     [](std::string_view key, FieldReader* fields, FlowCounters* c) {
       return ReadLimits(key, fields, &c->shadow_refused);
     }},
    Number<&FlowCounters::queued>("queued", "acquires that waited"),
    Number<&FlowCounters::granted_from_queue>("granted_from_queue", "those of them granted"),
    Number<&FlowCounters::longest_wait_ms>("longest_wait_ms", "the longest wait that has ended"),
    Number<&FlowCounters::kept>("kept", "keeps"),
    {"ended",
     "map {`released`, `released_late`, `client_offline`, `resource_timeout`, `rule_removed`, "
     "`admin`, `cancelled`}, all present",
     PackEnded, ReadEnded},
    {"held_ms",
     "map {`p50`, `p90`, `p99`, `longest`}: how long ended tokens were held; the quantiles are up "
     "to a quarter too high; once a token has ended, `sum`, `count` and `upto` too",
     PackTimes<kHeld>, ReadTimes<kHeld>},
    {"waited_ms",
     "map {`p50`, `p90`, `p99`, `sum`, `count`, `upto`}: how long acquires waited that were "
     "answered, whatever the answer; absent until one was",
     PackTimes<kWaited>, ReadTimes<kWaited>,
     [](const FlowCounters& c) { return c.waited_count > 0; }},
    {"outcomes",
     "map {`failed`, `timeout`}: releases that say so of their call, whatever the reason; absent "
     "until one did",
     PackOutcomes, ReadOutcomes, HasOutcomes},
});

}  // namespace

std::span<const FlowCounter> FlowCounterTable() { return kTable; }

void PackValue(const FlowCounters& counters, Packer* packer) {
  // The map's head has its size, so the counters sent are counted first.
  const auto is_sent = [&](const FlowCounter& counter) {
    return counter.is_sent == nullptr || counter.is_sent(counters);
  };
  packer->pack_map(static_cast<uint32_t>(std::count_if(kTable.begin(), kTable.end(), is_sent)));
  for (const FlowCounter& counter : kTable) {
    if (!is_sent(counter)) continue;
    PackString(counter.key, packer);
    counter.pack(counters, packer);
  }
}

bool ReadValue(std::string_view key, FieldReader* fields, std::optional<FlowCounters>* counters) {
  // Offline a row has no counters: the optional stays empty.
  if (fields->TakeMissing()) return true;
  counters->emplace();
  return fields->ForEachKey(key, [&](std::string_view name) {
    for (const FlowCounter& counter : kTable) {
      if (name == counter.key) return counter.read(name, fields, &**counters);
    }
    return fields->Skip(name);
  });
}

}  // namespace nowcalls::wire
