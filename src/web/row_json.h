// Rows of the listings as JSON; views.h tells how ids and times are written.
//
// Thread: any; pure. `now_ms`: the ledger clock for ages; 0: unknown, no ages.
#ifndef NOWCALLS_WEB_ROW_JSON_H_
#define NOWCALLS_WEB_ROW_JSON_H_

#include <cstdint>
#include <nlohmann/json_fwd.hpp>
#include <string>

#include "nowcalls/param.h"
#include "web/snapshot.h"

namespace nowcalls::web {

nlohmann::ordered_json FlowJson(const FlowLook& look, int64_t now_ms);
nlohmann::ordered_json TokenJson(const wire::TokenRow& row, int64_t now_ms);
nlohmann::ordered_json WaiterJson(const wire::WaiterRow& row, int64_t now_ms);
nlohmann::ordered_json ParamJson(const wire::ParamRow& row);
nlohmann::ordered_json SessionJson(const wire::SessionRow& row, int64_t now_ms);
nlohmann::ordered_json HistoryJson(const wire::HistoryRow& row, int64_t now_ms);
nlohmann::ordered_json NamespaceJson(const wire::NamespaceRow& row);

}  // namespace nowcalls::web

#endif  // NOWCALLS_WEB_ROW_JSON_H_
