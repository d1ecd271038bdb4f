// ExpireStrategy: what becomes of a token whose time is over.
//
// A token's time is over in two ways: its hold has passed without a keep
// (resource_timeout_factor x resourceTimeout), or its holder has been offline for the rule's
// clientOfflineTime. The server finds such tokens and asks the strategy, once for each token and
// each time; the strategy says what to do and does nothing itself. After Sentinel's ExpireStrategy,
// which is handed the whole token map instead.
//
// Times are milliseconds on the ledger clock, which starts as Unix time, never goes back, and goes
// on across restarts. Durations are milliseconds.
//
// Thread: the server's loop. A call must be quick (it is made for every expired token, up to 3000
// in a turn of the loop), must not block, and must decide by its arguments alone if replays are to
// give the same results. The strategy outlives the server that uses it.
//
// The server uses the strategy in core::CoreOptions::expire_strategy, and a DefaultExpireStrategy
// with the configured options when there is none. tools/manual/rules.md explains the two
// graces of the default with an example. `--expire-strategy` chooses by name, which the server
// shows in its log and in `info`; the names are read in src/server/settings.cc
// (ParseExpireStrategy), where one of your own gets one. There the options of a
// DefaultExpireStrategy are config->core.restart_grace_ms and .mass_expiry_factor.
//
// A rule may set the longest hold of a token (maxHoldMs). When it is over the server reclaims the
// token for kResourceTimeout without asking, and no extension for kResourceTimeout reaches beyond.
//
// A strategy of your own, which never takes the tokens of flow 7 from a holder that is online. Its
// default_ has the default options; give it those of the server for what was configured as
// restart-grace-ms and mass-expiry-factor to stay in force. That is complete when all settings have
// been read, and used when the ledger is recovered, so if it needs them build it in between, in
// Serve of src/server/bootstrap.cc, and give it its name there (config.expire_strategy_name).
//
//   class PatientWithSeven : public nowcalls::ExpireStrategy {
//    public:
//     nowcalls::ExpireDecision Decide(const nowcalls::ExpiredToken& token,
//                                     const nowcalls::TokenHolder& holder,
//                                     int64_t now_ms) override {
//       if (token.flow.value == 7 && holder.online) {
//         return nowcalls::ExpireDecision::ExtendUntil(now_ms + 60'000);
//       }
//       return default_.Decide(token, holder, now_ms);
//     }
//
//    private:
//     nowcalls::DefaultExpireStrategy default_;
//   };
#ifndef NOWCALLS_EXPIRE_STRATEGY_H_
#define NOWCALLS_EXPIRE_STRATEGY_H_

#include <cstdint>

#include "nowcalls/types.h"

namespace nowcalls {

enum class ExpireCause : uint8_t {
  kResourceTimeout,  // deadline_ms has passed.
  kClientOffline,    // The holder has been offline for client_offline_time_ms.
};

// The longest extension, one year.
inline constexpr int64_t kExtendMsMax = int64_t{365} * 24 * 3600 * 1000;

struct ExpiredToken {
  ExpireCause cause = ExpireCause::kResourceTimeout;
  TokenId id;
  FlowId flow;
  uint32_t count = 0;
  int64_t issued_ms = 0;
  int64_t deadline_ms = 0;
  int64_t hold_ms = 0;                 // How long the rule lets it be held without a keep.
  int64_t client_offline_time_ms = 0;  // Of the rule.
  // When the server became ready, if the token was issued before that; else 0.
  int64_t restarted_ms = 0;
};

struct TokenHolder {
  bool online = false;
  int64_t offline_since_ms = 0;  // Meaningful while offline; at least restarted_ms.
  // It held tokens when the server stopped, and has not been back since the server became ready.
  bool from_before_restart = false;
  // It went offline with tokens, together with a large part of all sessions that had some: rather a
  // network cut than a mass death (the server's mass_expiry_* options). Once it is set it stays so
  // until the holder is back or the server restarts.
  bool mass_offline = false;
};

class ExpireDecision {
 public:
  enum class Kind : uint8_t { kReclaim, kExtend, kLeave };

  // Take the token back, for the reason of the cause.
  static constexpr ExpireDecision Reclaim() { return ExpireDecision(Kind::kReclaim, 0); }
  // Ask again at `until_ms` or soon after; not before, for the same cause, whatever else becomes
  // due meanwhile. At most now_ms + kExtendMsMax: what is later is taken for that. A moment that is
  // not after now_ms is Leave. For kResourceTimeout it becomes the token's deadline, durably, and a
  // keep replaces it. For kClientOffline it holds until the holder is back or the server restarts;
  // then its absence begins anew.
  static constexpr ExpireDecision ExtendUntil(int64_t until_ms) {
    return ExpireDecision(Kind::kExtend, until_ms);
  }
  // Ask again a sweep interval later. For kResourceTimeout that is a scan of the ledger each time.
  static constexpr ExpireDecision Leave() { return ExpireDecision(Kind::kLeave, 0); }

  constexpr Kind kind() const { return kind_; }
  constexpr int64_t until_ms() const { return until_ms_; }

 private:
  constexpr ExpireDecision(Kind kind, int64_t until_ms) : kind_(kind), until_ms_(until_ms) {}

  Kind kind_;
  int64_t until_ms_;
};

class ExpireStrategy {
 public:
  virtual ~ExpireStrategy() = default;
  virtual ExpireDecision Decide(const ExpiredToken& token, const TokenHolder& holder,
                                int64_t now_ms) = 0;
};

struct ExpireOptions {
  // Counted from the moment the server became ready. A session that was recovered has the longer of
  // this and clientOfflineTime to come back; a token that was recovered does not time out before
  // the shorter of this and its hold.
  int64_t restart_grace_ms = 10'000;
  // Sessions that went offline in a mass have this many times clientOfflineTime to come back, and
  // until then their tokens do not time out either. At least 1.
  double mass_factor = 5;
};

// The default: reclaims, but for the two graces of ExpireOptions.
class DefaultExpireStrategy : public ExpireStrategy {
 public:
  explicit DefaultExpireStrategy(const ExpireOptions& options = ExpireOptions())
      : options_(options) {}
  ExpireDecision Decide(const ExpiredToken& token, const TokenHolder& holder,
                        int64_t now_ms) override;

 private:
  const ExpireOptions options_;
};

// Reclaims at once, whatever happened.
class StrictExpireStrategy : public ExpireStrategy {
 public:
  ExpireDecision Decide(const ExpiredToken& token, const TokenHolder& holder,
                        int64_t now_ms) override;
};

}  // namespace nowcalls

#endif  // NOWCALLS_EXPIRE_STRATEGY_H_
