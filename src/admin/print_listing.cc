// The listing commands: rows from a source to the output.
#include <string>

#include "admin/columns.h"
#include "admin/commands.h"
#include "base/shown_text.h"
#include "core/rules/rule_amount.h"

namespace nowcalls::admin {
namespace {

using wire::FlowRow;
using wire::HistoryRow;
using wire::ParamRow;
using wire::SessionRow;
using wire::TokenRow;
using wire::WaiterRow;

// `sink` for those sessions only that the arguments ask for.
RowSink<SessionRow> Wanted(const Arguments& arguments, const RowSink<SessionRow>& sink) {
  return [&arguments, sink](const SessionRow& row) {
    const RowFilter& filter = arguments.filter;
    const bool wanted =
        (!filter.client_id.has_value() || row.client_id == *filter.client_id) &&
        (!filter.name_space.has_value() || row.name_space == *filter.name_space) &&
        row.instance.value_or(0) == filter.instance.value_or(row.instance.value_or(0)) &&
        (!arguments.online.has_value() || row.online == *arguments.online);
    return wanted ? sink(row) : Status::Ok();
  };
}

// `sink` for the flows that `stat` is asked for.
RowSink<FlowRow> WantedFlows(const Arguments& arguments, const RowSink<FlowRow>& sink) {
  if (!arguments.busy) return sink;
  return [sink](const FlowRow& row) {
    return row.tokens > 0 || row.waiters.value_or(0) > 0 ? sink(row) : Status::Ok();
  };
}

// `sink` for the rows of one namespace only, if the arguments name one.
template <typename Row>
RowSink<Row> InNamespace(const Arguments& arguments, RowSink<Row> sink) {
  if (!arguments.filter.name_space.has_value()) return sink;
  return [&arguments, sink](const Row& row) {
    return row.name_space == *arguments.filter.name_space ? sink(row) : Status::Ok();
  };
}

Status PrintRules(const Arguments& arguments, Format format, int64_t now_ms, Source* source,
                  Output* out) {
  if (format == Format::kJsonl) {
    return source->Rules(arguments.filter.name_space, [out](const RuleRow& row) {
      out->Write(ShownJson(RuleRowToJson(row)) + "\n");
      return out->status();
    });
  }
  return PrintRows<ListedRule>(format, now_ms, out, [&](const RowSink<ListedRule>& sink) {
    return source->Rules(arguments.filter.name_space, [&sink](const RuleRow& row) {
      return sink(
          {row, core::MaxPerClientText(row.rule), core::AmountText(row.rule, row.rule.count)});
    });
  });
}

Status PrintFlow(const Arguments& arguments, Format format, int64_t now_ms, Source* source,
                 Output* out) {
  // Asked before the output begins: a flow that is not there leaves no header.
  const Result<std::vector<FlowRow>> flows =
      source->Flow({FlowId{arguments.flow_id}, arguments.kind});
  if (!flows.ok()) return flows.status();
  const Format detail = format == Format::kTable ? Format::kDetail : format;
  return PrintRows<FlowRow>(detail, now_ms, out, [&](const RowSink<FlowRow>& sink) {
    for (const FlowRow& row : *flows) NOWCALLS_RETURN_IF_ERROR(sink(row));
    return Status::Ok();
  });
}

}  // namespace

Status PrintListing(const Arguments& arguments, Format format, Source* source, Output* out) {
  int64_t now_ms = 0;
  // Only people see ages, so raw formats do not ask for the clock.
  if (format == Format::kTable) {
    const Result<int64_t> now = source->NowMs();
    if (!now.ok()) return now.status();
    now_ms = *now;
  }
  switch (arguments.command) {
    case Command::kDump:
      return PrintRows<TokenRow>(format, now_ms, out, [&](const RowSink<TokenRow>& sink) {
        return source->Tokens(arguments.filter, sink);
      });
    case Command::kTokens:
      return PrintRows<TokenRow>(format, now_ms, out, [&](const RowSink<TokenRow>& sink) {
        return source->OldestTokens(arguments.filter, arguments.limit, sink);
      });
    case Command::kStat:
      return PrintRows<FlowRow>(format, now_ms, out, [&](const RowSink<FlowRow>& sink) {
        return source->Flows(InNamespace(arguments, WantedFlows(arguments, sink)));
      });
    case Command::kSessions:
      return PrintRows<SessionRow>(format, now_ms, out, [&](const RowSink<SessionRow>& sink) {
        return source->Sessions(Wanted(arguments, sink));
      });
    case Command::kHistory:
      return PrintRows<HistoryRow>(format, now_ms, out, [&](const RowSink<HistoryRow>& sink) {
        return source->History(arguments.history_filter, arguments.limit, sink);
      });
    case Command::kParams:
      return PrintRows<ParamRow>(format, now_ms, out, [&](const RowSink<ParamRow>& sink) {
        return source->Params(arguments.flow_id, arguments.limit, arguments.by_minute, sink);
      });
    case Command::kWaiters:
      return PrintRows<WaiterRow>(format, now_ms, out, [&](const RowSink<WaiterRow>& sink) {
        RowFilter filter = arguments.filter;
        if (arguments.flow_id != 0) filter.flow_id = arguments.flow_id;
        filter.kind = arguments.kind;
        return source->Waiters(filter, arguments.limit, sink);
      });
    case Command::kFlow: return PrintFlow(arguments, format, now_ms, source, out);
    case Command::kRulesList: return PrintRules(arguments, format, now_ms, source, out);
    case Command::kRulesSources: return PrintRulesSources(arguments, format, now_ms, source, out);
    case Command::kRulesDiff:
    case Command::kInfo:
    case Command::kPing:
    case Command::kRepair:
    case Command::kVerify:
    case Command::kBackup:
    case Command::kRestore:
    case Command::kRulesLoad:
    case Command::kRulesCheck:
    case Command::kReclaim:
    case Command::kReclaimClient:
    case Command::kReclaimFlow:
    case Command::kReclaimNamespace:
    case Command::kDrainNamespace:
    case Command::kPurge:
    case Command::kDrain:
    case Command::kAccessAdd:
    case Command::kAccessRotate:
    case Command::kAccessList:
    case Command::kAccessCheck:
    case Command::kAccessTest:
    case Command::kCluster:
    case Command::kHandover: break;
  }
  return Status::InvalidArgument("the command lists nothing");
}

}  // namespace nowcalls::admin
