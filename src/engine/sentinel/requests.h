// The table of Sentinel's requests.
//
// Thread: any.
#ifndef NOWCALLS_ENGINE_SENTINEL_REQUESTS_H_
#define NOWCALLS_ENGINE_SENTINEL_REQUESTS_H_

#include <array>
#include <cstddef>

#include "access/access.h"
#include "wire/sentinel/frames.h"

namespace nowcalls::engine::sentinel {

struct RequestRow {
  wire::sentinel::RequestType type;
  access::Needs needs;
};

// In the order of RequestType.
inline constexpr auto kRequests = std::to_array<RequestRow>({
    {wire::sentinel::RequestType::kPing, {access::Role::kClient, access::Scope::kNamespace}},
    {wire::sentinel::RequestType::kFlow, {access::Role::kClient, access::Scope::kFlow}},
    {wire::sentinel::RequestType::kParamFlow, {access::Role::kClient, access::Scope::kFlow}},
    {wire::sentinel::RequestType::kAcquire, {access::Role::kClient, access::Scope::kFlow}},
    {wire::sentinel::RequestType::kRelease, {access::Role::kClient, access::Scope::kToken}},
    {wire::sentinel::RequestType::kKeep, {access::Role::kClient, access::Scope::kToken}},
});

constexpr bool EachRequestHasItsRow() {
  for (size_t i = 0; i < kRequests.size(); ++i) {
    if (static_cast<size_t>(kRequests[i].type) != i) return false;
  }
  return kRequests.size() == wire::sentinel::kRequestTypeCount;
}
static_assert(EachRequestHasItsRow(), "a row a request, in the order of RequestType");

}  // namespace nowcalls::engine::sentinel

#endif  // NOWCALLS_ENGINE_SENTINEL_REQUESTS_H_
