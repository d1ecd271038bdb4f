#include "nowcalls/embedded.h"

#include <utility>

#include "base/text.h"
#include "client/timeouts.h"
#include "embedded/engine_front.h"

namespace nowcalls {
Result<std::unique_ptr<Embedded>> Embedded::Open(const EmbeddedOptions& options) {
  NOWCALLS_RETURN_IF_ERROR(CheckNamespace(options.name_space).WithContext("name_space"));
  NOWCALLS_RETURN_IF_ERROR(CheckClientId(options.client_id).WithContext("client_id"));
  NOWCALLS_RETURN_IF_ERROR(client::CheckTimeout(options.timeout));
  // Negated, so that NaN is refused, too.
  if (const double factor = options.resource_timeout_factor; !(factor >= 2 && factor <= 3)) {
    return Status::InvalidArgument("resource_timeout_factor must be 2 to 3");
  }
  Result<std::shared_ptr<embedded::EngineFront>> front = embedded::EngineFront::Open(options);
  if (!front.ok()) return front.status();
  return std::unique_ptr<Embedded>(new Embedded(*std::move(front)));
}

Result<uint64_t> Embedded::LoadRules(std::string_view name_space, std::string_view json) {
  return static_cast<embedded::EngineFront*>(front())->LoadRules(name_space, json);
}

}  // namespace nowcalls
