// Who the client is: identify.
#include <string>

#include "access/gate.h"
#include "engine/identities.h"
#include "engine/rpc/handlers.h"

namespace nowcalls::engine::rpc {

// A wrong secret is answered later, by AnswerWrongSecret.
void Identify(const Call& call) {
  wire::IdentifyParams params;
  wire::RequestError error;
  if (!wire::DecodeIdentify(call.request.params, &params, &error)) return ReplyError(call, error);
  if (!params.secret.empty()) {
    const Status shown =
        call.service.identities->Show(call.connection, params.secret, call.step.now);
    if (shown.code() == StatusCode::kUnavailable) {
      call.late->wrong_secret = call.request.msgid;
      return;
    }
    if (!shown.ok()) {
      return ReplyError(call, {wire::ErrorCode::kPermission, "identify: " + shown.message()});
    }
  }
  const access::Identity& identity = call.connection->identity;
  wire::EncodeIdentify(call.request.msgid,
                       {.name = identity.principal.name,
                        .role = std::string(access::RoleName(identity.principal.role)),
                        .proof = std::string(access::ProofName(identity.proof)),
                        .namespaces = identity.principal.namespaces},
                       call.Immediate());
}

}  // namespace nowcalls::engine::rpc
