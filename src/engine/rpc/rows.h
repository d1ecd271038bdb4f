// The core's entities as the rows that listings show.
//
// Thread: loop.
#ifndef NOWCALLS_ENGINE_RPC_ROWS_H_
#define NOWCALLS_ENGINE_RPC_ROWS_H_

#include "core/core.h"
#include "core/grants/waiter_list.h"
#include "core/rates/top_values.h"
#include "core/tables/slot.h"
#include "wire/rows.h"

namespace nowcalls::engine::rpc {

wire::TokenRow RowOf(const core::Core& core, core::TokenSlot slot);
wire::FlowRow RowOf(const core::Core& core, core::FlowSlot slot, Instant now);
// Every counter and histogram of the flow.
void FillCounters(const core::Flow& flow, wire::FlowRow* row);
// `use`: of a value of the flow's parameter.
wire::WaiterRow RowOf(const core::Core& core, const core::WaiterPlace& place);
wire::ParamRow RowOf(const core::Core& core, core::FlowSlot slot, const core::ValueUse& use);
wire::HistoryRow RowOf(const ledger::HistoryEntry& entry);
wire::SessionRow RowOf(const core::Core& core, const core::SessionState& session);

}  // namespace nowcalls::engine::rpc

#endif  // NOWCALLS_ENGINE_RPC_ROWS_H_
