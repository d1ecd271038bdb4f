#include "sim/sentinel_caller.h"

namespace nowcalls::sim {

void SentinelCaller::Received(std::string_view bytes) {
  const LinkId from = link();
  input_ += bytes;
  const std::string arrived = std::exchange(input_, {});
  std::string_view left = arrived;
  for (wire::sentinel::Response response; IsOn(from);) {
    const auto taken = wire::sentinel::TakeResponse(&left, &response);
    if (taken == wire::sentinel::Answer::kIncomplete) {
      input_ = left;
      return;
    }
    if (taken == wire::sentinel::Answer::kMalformed || !Take(response)) {
      return Misunderstood("a frame of type " + std::to_string(response.type));
    }
  }
}

bool SentinelCaller::Take(const wire::sentinel::Response& response) {
  const auto awaited = answers_.extract(response.xid);
  if (awaited.empty() || awaited.mapped().type != response.type) return false;
  network()->Answered(link(), awaited.mapped().sent_ms);
  const bool half =
      response.status == TokenStatus::kBadRequest && MayBeOfHalf(awaited.mapped().sent_ms);
  awaited.mapped().answer(half ? nullptr : &response);
  return true;
}

void SentinelCaller::Disconnected() {
  for (const auto& [xid, awaited] : std::exchange(answers_, {})) awaited.answer(nullptr);
  Left();
}

}  // namespace nowcalls::sim
