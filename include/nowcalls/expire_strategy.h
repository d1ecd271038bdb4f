// ExpireStrategy: decides what becomes of a token whose time is over, after Sentinel's
// ExpireStrategy, which gets the whole token map instead.
//
// A token's time is over after its hold without a keep (resource_timeout_factor x resourceTimeout),
// or when its holder was offline for the rule's clientOfflineTime. The server asks once for each
// token and each time.
//
// Times are ms on the ledger clock, which starts as Unix time and never goes back, also across
// restarts. Durations are ms.
//
// Thread: the server's loop; in an embedded service any, one at a time. Calls must be quick (up to
// 3000 in a turn) and must not block. They decide by their arguments alone, so that replays agree.
// The strategy outlives its server.
//
// nowcalls/server.h and nowcalls/embedded.h take a strategy. Without one the server uses a
// DefaultExpireStrategy with the configured options (graces: tools/manual/rules.md), or what
// `--expire-strategy` names.
//
// After a rule's maxHoldMs the server reclaims a token for kResourceTimeout without asking. No
// extension for kResourceTimeout reaches beyond.
//
// A strategy that never takes the tokens of flow 7 from an online holder. Its default_ has default
// options, whatever restart-grace-ms and mass-expiry-factor are configured.
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
  // When the server became ready, if the token is older; else 0.
  int64_t restarted_ms = 0;
};

struct TokenHolder {
  bool online = false;
  int64_t offline_since_ms = 0;  // Meaningful while offline; at least restarted_ms.
  // Held tokens when the server stopped, and was not back since the server became ready.
  bool from_before_restart = false;
  // Went offline together with a large part of all sessions with tokens: rather a network cut than
  // a mass death (the server's mass_expiry_* options). Set until the holder is back or the server
  // restarts.
  bool mass_offline = false;
};

class ExpireDecision {
 public:
  enum class Kind : uint8_t { kReclaim, kExtend, kLeave };

  // Take the token back, for the reason of the cause.
  static constexpr ExpireDecision Reclaim() { return ExpireDecision(Kind::kReclaim, 0); }
  // Ask again at `until_ms` or soon after, for the same cause never before. Later than now_ms +
  // kExtendMsMax counts as that; not after now_ms as Leave. For kResourceTimeout it becomes the
  // token's deadline, durably; a keep replaces it. For kClientOffline it holds until the holder is
  // back or the server restarts; then the absence begins anew.
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
  // Since the server became ready. A recovered session has max(this, clientOfflineTime) to come
  // back; a recovered token does not time out before min(this, its hold).
  int64_t restart_grace_ms = 10'000;
  // Sessions offline in a mass have this many times clientOfflineTime to come back; until then
  // their tokens do not time out. At least 1.
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
