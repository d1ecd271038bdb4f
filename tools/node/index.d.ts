// Client of nowcalls, a durable token server for cluster concurrency control.
//
// All times are in milliseconds. Ids of tokens and fences have 63 bits, so they are bigint.

/// <reference types="node" />

import type { SecureContext } from 'node:tls';

/** A rule's flowId, or the `resource` of a rule of the client's namespace. */
export type Flow = number | bigint | string;

/** A value of a rule's parameter. An integral number is an integer, any other a double. */
export type Param = number | bigint | boolean | string | null;

/** true: as the rule's resourceTimeoutStrategy says. "always": kept. false: not kept. */
export type Keep = boolean | 'always';

/** How a call ended, which the server counts. */
export type Outcome = 'ok' | 'failed' | 'timeout';

export interface Logger {
  info(text: string): void;
  warn(text: string): void;
  error(text: string): void;
}

export interface Settings {
  /** HOST:PORT or [IPV6]:PORT, or several, which are tried in turn. 127.0.0.1:18730. */
  address?: string | readonly string[];
  /** The application, which has the rules: "default". */
  namespace?: string;
  /** Names the session that holds the tokens. Without one the client makes one up. */
  clientId?: string | null;
  /** What a call may take besides its wait, connecting anew included: 5000, at most 3600000. */
  timeout?: number;
  /** Whether permits are kept in the background: true. */
  keep?: Keep;
  /** What acquires and requests do without a server: "rule". */
  fallback?: 'rule' | 'local' | 'pass' | 'fail';
  /** Shares of this process by flow, instead of those from the rules. Digits are a number. */
  localLevels?: Readonly<Record<string, number>> | ReadonlyMap<Flow, number> | null;
  /** Refuse to share the client id with another process that is online. */
  exclusive?: boolean;
  /** Take over the tokens of the process before that had the client id and rejoined, too. */
  rejoin?: boolean;
  /**
   * true: the authorities that Node trusts vouch for the server; a path: those of that PEM file; a
   * context of tls.createSecureContext; false: plain. null: as NOWCALLS_TLS and NOWCALLS_TLS_CA
   * say.
   */
  tls?: boolean | string | URL | SecureContext | null;
  /** PEM files of a certificate to show to the server, and of its key. */
  tlsCertificate?: string | URL | null;
  tlsKey?: string | URL | null;
  /** The server's certificate must have it, in place of the host of the address. */
  tlsServerName?: string | null;
  /**
   * Shows the server who the client is: a text, or a function that tells it for each connection. It
   * leaves over TLS, or to this machine. null: as NOWCALLS_SECRET_FILE says.
   */
  secret?: string | (() => string) | null;
  /** Called with each lost permit. */
  onLost?: ((permit: Permit) => unknown) | null;
  /**
   * Takes lines for the program's log. Left out: warnings go to stderr. null: nothing is logged.
   */
  logger?: Logger | null;
}

export interface CallOptions {
  /** What this call may take, instead of the client's timeout. */
  timeout?: number | null;
  /** Ends the call: it rejects with the signal's reason, and nothing is held. */
  signal?: AbortSignal | null;
}

export interface PermitOptions extends CallOptions {
  /** How long to wait for room. Left out: as the rule has it. */
  wait?: number | null;
  /** Waits before those that are not. */
  prioritized?: boolean;
  /** Instead of the client's. */
  keep?: Keep | null;
  onLost?: ((permit: Permit) => unknown) | null;
}

export interface AcquireOptions extends PermitOptions {
  /** Calls that the token stands for: 1. */
  count?: number;
  /** The value of the rule's parameter, if it has one. */
  param?: Param;
}

export interface AcquireAllOptions extends PermitOptions {
  /** Whether to wait until the calls of the rates may be made: true. */
  sleep?: boolean;
}

export interface RequestParamOptions extends CallOptions {
  /** Calls that are asked for: 1. */
  count?: number;
  /** Whether to sleep until the calls may be made, if that is within the timeout: true. */
  sleep?: boolean;
}

export interface RequestOptions extends RequestParamOptions {
  prioritized?: boolean;
}

/** The answer to a request for calls a second that passed. */
export interface Rate {
  /** Calls that are left now; -1 if nobody can tell. */
  readonly remaining: number;
  /** How long to sleep before the call; above 0 only if the request did not sleep. */
  readonly wait: number;
}

/** What rate() makes. */
export interface RateItem {
  readonly flowId: Flow;
  readonly calls: number;
  readonly param: Param;
  readonly rate: boolean;
}

export type Item = Flow | RateItem | readonly [flowId: Flow, count?: number, param?: Param];

/** A row of PROTOCOL.md. token_id, fence, session and instance are bigint. */
export type Row = Record<string, any>;

export interface Stats {
  connected: boolean;
  address: string;
  clientId: string;
  /** Sessions of the namespace when the client connected last. */
  sessionsOnline: number;
  /** Tokens of the server that are held. */
  held: number;
  /** Calls whose outcome is awaited. */
  waiting: number;
  /** Releases and cancels without an answer. */
  unsettled: number;
  /** Whether the server tells of lost tokens. */
  tellsLost: boolean;
  localGranted: number;
  localRefused: number;
  localPassed: number;
  connects: number;
  disconnects: number;
  kept: number;
  lost: number;
  cancelled: number;
  askedAgain: number;
}

/** One token, or a local stand-in for it when no server answers. */
export class Permit {
  private constructor();
  readonly flowId: Flow;
  readonly count: number;
  readonly param: Param;
  /** The server's id of the token; 0n for a local permit. */
  readonly tokenId: bigint;
  /** Grows with each grant: a resource that remembers the highest refuses stale holders. */
  readonly fence: bigint;
  /** After so long without a keep the server takes the token back; 0 for a local permit. */
  readonly holdMs: number;
  /** Calls in progress at the grant, this one included, and their limit. */
  readonly nowCalls: number;
  readonly level: number;
  /** Granted by the fallback of this process. */
  readonly local: boolean;
  /**
   * The token ended, and this client did not release it; or this client, by its own clock, cannot
   * be sure of it any more. Once true it stays so.
   */
  readonly lost: boolean;
  /** The server's word for the reason, such as "admin"; null if it is not known. */
  readonly lostReason: string | null;
  /** Aborted when the permit is lost. */
  readonly signal: AbortSignal;
  /** Until when the token is surely this client's, in ms of now(). Infinity for a local permit. */
  readonly validUntil: number;
  /**
   * The time until then; 0 once it is lost or released. At most 2147483647, the longest delay of
   * setTimeout, which is that of a local permit.
   */
  readonly validFor: number;
  /** Whether release was called. */
  readonly released: boolean;
  /** How long to sleep before the call: of a group with rates that was not to sleep. */
  readonly wait: number;
  /**
   * Gives the token back; a second time does nothing. Resolves to false if the token had been lost.
   * Rejects with Unavailable or OutcomeUnknown when no answer comes in time; the client then goes
   * on in the background. After close it rejects with Unavailable, and the server takes the token
   * back.
   */
  release(outcome?: Outcome, options?: CallOptions): Promise<boolean>;
  /** Renews holdMs now. Resolves to false if the token is lost. */
  keep(options?: CallOptions): Promise<boolean>;
  /** For `await using`, where there is Symbol.asyncDispose. */
  [Symbol.asyncDispose](): Promise<void>;
}

/**
 * A client of one namespace. Share it, and close it at the end. The constructor does not wait for a
 * connection. Throws BadRequest for wrong settings.
 */
export class Client {
  constructor(settings?: Settings);
  /**
   * Takes a token for `count` calls in progress. Rejects with Refused, NoRule, Unavailable,
   * OutcomeUnknown or BadRequest.
   */
  acquire(flowId: Flow, options?: AcquireOptions): Promise<Permit>;
  /**
   * Takes a token for each item, for all or for none. Nothing is held while it waits. Resolves to a
   * permit for each item, null for a rate.
   */
  acquireAll(items: readonly Item[], options?: AcquireAllOptions): Promise<(Permit | null)[]>;
  /**
   * Holds a token while `work` runs. If work throws, the call has failed; with an AbortError or a
   * TimeoutError, its outcome is "timeout".
   */
  run<T>(flowId: Flow, work: (permit: Permit) => T): Promise<Awaited<T>>;
  run<T>(flowId: Flow, options: AcquireOptions, work: (permit: Permit) => T): Promise<Awaited<T>>;
  /** Asks for `count` calls under a rule of calls a second. Nothing is held. */
  request(flowId: Flow, options?: RequestOptions): Promise<Rate>;
  /** Asks for `count` calls of each value of the rule's parameter: of all, or of none. */
  requestParam(
    flowId: Flow,
    values: readonly Param[],
    options?: RequestParamOptions,
  ): Promise<Rate>;
  /** The server's clock, as Unix time in ms. */
  ping(options?: CallOptions): Promise<number>;
  /** The row of a flow: level, now_calls, waiters, counters and more. */
  flow(flowId: Flow, options?: CallOptions): Promise<Row>;
  /** Rows of all flows. */
  flows(): AsyncGenerator<Row, void>;
  /** Rows of all sessions of the server. */
  sessions(): AsyncGenerator<Row, void>;
  /** Rows of live tokens, the oldest first. */
  tokens(filter?: { flowId?: Flow | null; clientId?: string | null }): AsyncGenerator<Row, void>;
  /** Rows of tokens that ended without a release in time, the newest first. */
  history(): AsyncGenerator<Row, void>;
  /** Figures of this client. */
  stats(): Stats;
  /**
   * Ends the client. Waits up to the timeout for releases on their way to a connected server.
   * Permits that are still held stay with the server until their hold or the rule's
   * clientOfflineTime is over.
   */
  close(): Promise<void>;
  [Symbol.asyncDispose](): Promise<void>;
}

/** An item of acquireAll that asks for calls a second, and holds nothing. */
export function rate(flowId: Flow, count?: number, param?: Param): RateItem;

/** The clock of validUntil: ms since the machine was started, with the time that it slept. */
export function now(): number;

/** Base of all errors that a client raises on purpose. */
export class NowcallsError extends Error {}

/** Wrong arguments, a closed client, or a server that is too old for the request. */
export class BadRequest extends NowcallsError {
  /** The error code of PROTOCOL.md, or null if no server answered. */
  readonly code: number | null;
}

/** The server does not let this client in, or not to this flow. No fallback admits the call. */
export class PermissionDenied extends BadRequest {}

/** The server, or the fallback, refused. Nothing is held and nothing is counted. */
export class Refused extends NowcallsError {
  readonly flowId: Flow;
  /** 1 BLOCKED, -2 TOO_MANY_REQUEST, or 3 for NoRule. */
  readonly status: number;
  /** The word of PROTOCOL.md for the limit, such as "level" or "queue_timeout". */
  readonly refusedBy: string | null;
  /** Of the rule or of the parameter's value; 0 where the answer has none. */
  readonly nowCalls: number;
  readonly level: number;
  /** The fallback of this process refused, not the server. */
  readonly local: boolean;
}

/** No rule has this flow id, so nothing limits the call. The caller decides what that means. */
export class NoRule extends Refused {}

/** No server could be asked in time. The request was surely not carried out. */
export class Unavailable extends NowcallsError {}

/** Sent, and not answered in time. Perhaps it was carried out; an acquire is cancelled. */
export class OutcomeUnknown extends NowcallsError {}
