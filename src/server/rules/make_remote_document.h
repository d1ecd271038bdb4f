// MakeRemoteDocument: the right RemoteDocument of a URL, as the settings say.
//
// Thread: main.
#ifndef NOWCALLS_SERVER_RULES_MAKE_REMOTE_DOCUMENT_H_
#define NOWCALLS_SERVER_RULES_MAKE_REMOTE_DOCUMENT_H_

#include <memory>

#include "nowcalls/status.h"
#include "server/config/config.h"
#include "server/rules/remote_document.h"

namespace nowcalls::server {

// Asks nobody yet. kInvalidArgument: a file of the settings cannot be read. kIoError: etcd's client
// cannot be loaded.
Result<std::unique_ptr<RemoteDocument>> MakeRemoteDocument(const ServerConfig& config,
                                                           const RuleUrl& url);

}  // namespace nowcalls::server

#endif  // NOWCALLS_SERVER_RULES_MAKE_REMOTE_DOCUMENT_H_
