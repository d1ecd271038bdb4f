// Config: the settings of a client, checked.

import { randomUUID } from 'node:crypto';
import net from 'node:net';
import { debuglog } from 'node:util';

import { BadRequest } from './errors.js';
import { makeSecret } from './secret.js';
import { bytesOf, hasControls, isHost, show } from './text.js';
import { makeTls } from './tls.js';
import { numberIfExact } from './wire.js';

const DEFAULT_PORT = 18730;
const NAME_BYTES_MAX = 128;
export const TIME_MAX_MS = 3_600_000; // Of a timeout and of a wait.
const FALLBACKS = ['rule', 'local', 'pass', 'fail'];
const KEEPS = [true, false, 'always'];

const DEFAULTS = {
  address: `127.0.0.1:${DEFAULT_PORT}`,
  namespace: 'default',
  clientId: null,
  timeout: 5000,
  keep: true,
  fallback: 'rule',
  localLevels: null,
  exclusive: false,
  rejoin: false,
  tls: null,
  tlsCertificate: null,
  tlsKey: null,
  tlsServerName: null,
  secret: null,
  onLost: null,
  logger: undefined,
};

const debug = debuglog('nowcalls');

/** Warnings go to stderr; NODE_DEBUG=nowcalls shows what is of no concern to most. */
const STDERR = {
  info: (text) => debug('%s', text),
  warn: (text) => console.warn(`nowcalls: ${text}`),
  error: (text) => console.error(`nowcalls: ${text}`),
};
const NO_LOGGER = { info() {}, warn() {}, error() {} };

/** Throws BadRequest for what no server would take. */
export function makeConfig(given = {}) {
  checkKeys('settings', given, DEFAULTS);
  const settings = { ...DEFAULTS };
  for (const [name, value] of Object.entries(given)) {
    if (value !== undefined) settings[name] = value;
  }
  checkKeep(settings.keep);
  checkTime('timeout', settings.timeout);
  if (settings.timeout === 0) throw new BadRequest('timeout must be above 0');
  if (!FALLBACKS.includes(settings.fallback)) {
    const known = FALLBACKS.join(', ');
    throw new BadRequest(`fallback must be one of ${known}, not ${show(settings.fallback)}`);
  }
  for (const name of ['exclusive', 'rejoin']) {
    if (typeof settings[name] !== 'boolean') {
      throw new BadRequest(`${name} must be true or false, not ${show(settings[name])}`);
    }
  }
  checkName('namespace', settings.namespace);
  const clientId = settings.clientId ?? `node-${randomUUID()}`;
  checkName('clientId', clientId);
  if (clientId.startsWith('@')) throw new BadRequest('clientId must not begin with @');
  checkCallback(settings.onLost);
  return {
    ...settings,
    clientId,
    addresses: addressesOf(settings.address),
    localLevels: levelsOf(settings.localLevels),
    tls: makeTls(settings),
    secret: makeSecret(settings.secret),
    logger: loggerOf(settings.logger),
  };
}

/** What is misspelt would have no effect. */
export function checkKeys(what, given, known) {
  if (typeof given !== 'object' || given === null || Array.isArray(given)) {
    throw new BadRequest(`${what} must be an object, not ${show(given)}`);
  }
  for (const name of Object.keys(given)) {
    if (!Object.hasOwn(known, name)) throw new BadRequest(`${what}: ${name} is not known`);
  }
}

/** NaN would confuse timers, infinity overflows them. */
export function checkTime(what, value) {
  if (typeof value !== 'number' || !(value >= 0 && value <= TIME_MAX_MS)) {
    throw new BadRequest(`${what} must be 0 to ${TIME_MAX_MS} ms, not ${show(value)}`);
  }
}

export function checkKeep(keep) {
  if (!KEEPS.includes(keep)) {
    throw new BadRequest(`keep must be true, false or "always", not ${show(keep)}`);
  }
}

export function checkCallback(callback) {
  if (callback !== null && typeof callback !== 'function') {
    throw new BadRequest(`onLost must be a function, not ${show(callback)}`);
  }
}

function loggerOf(logger) {
  if (logger === undefined) return STDERR;
  if (logger === null) return NO_LOGGER;
  for (const name of ['info', 'warn', 'error']) {
    if (typeof logger[name] !== 'function') {
      throw new BadRequest(`logger must have ${name}(text), as console has`);
    }
  }
  return logger;
}

/** Keys of an object are texts: those of digits alone are numbers, unless it is a Map. */
function levelsOf(given) {
  if (given === null) return new Map();
  if (typeof given !== 'object') {
    throw new BadRequest(`localLevels must be an object or a Map, not ${show(given)}`);
  }
  const entries = given instanceof Map ? [...given] : Object.entries(given).map(numbered);
  return new Map(
    entries.map(([flow, level]) => {
      if (!Number.isSafeInteger(level) || level < 0) {
        const what = `localLevels[${show(flow)}]`;
        throw new BadRequest(`${what} must be an integer from 0 on, not ${show(level)}`);
      }
      return [typeof flow === 'bigint' ? numberIfExact(flow) : flow, level];
    }),
  );
}

function numbered([flow, level]) {
  return [/^[0-9]+$/.test(flow) ? numberIfExact(BigInt(flow)) : flow, level];
}

function addressesOf(address) {
  const texts = Array.isArray(address) ? address : [address];
  if (texts.length === 0) throw new BadRequest('there is no address');
  return texts.map(parseAddress);
}

/** HOST, HOST:PORT or [IPV6]:PORT; without a port it is the default port. */
export function parseAddress(text) {
  if (typeof text !== 'string') throw new BadRequest(`address must be a string, not ${show(text)}`);
  let host = text;
  let port = String(DEFAULT_PORT);
  if (text.startsWith('[')) {
    const end = text.includes(']') ? text.indexOf(']') : text.length;
    host = text.slice(1, end);
    const rest = text.slice(end + 1);
    port = rest.startsWith(':') ? rest.slice(1) : rest || port;
  } else if (text.split(':').length === 2) {
    [host, port] = text.split(':');
  }
  const isNumber6 = net.isIPv6(host.split('%')[0]);
  const about = `address ${show(text)} is not HOST:PORT or [IPV6]:PORT`;
  if (host.includes('/') || (host.includes(':') && !isNumber6)) {
    throw new BadRequest(`${about}; it has no http://`);
  }
  const known = /^[0-9]+$/.test(port) && Number(port) > 0 && Number(port) < 65536;
  if (!known || !(isNumber6 || isHost(host))) throw new BadRequest(about);
  return { host, port: Number(port) };
}

function checkName(what, name) {
  if (typeof name !== 'string' || bytesOf(name) < 1 || bytesOf(name) > NAME_BYTES_MAX) {
    throw new BadRequest(`${what} must be a text of 1 to ${NAME_BYTES_MAX} bytes`);
  }
  if (hasControls(name)) {
    throw new BadRequest(`${what} must not have control characters or surrogates`);
  }
}
