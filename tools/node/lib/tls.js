// Tls: how a client makes sure of its server, and words for what fails.

import { X509Certificate } from 'node:crypto';
import fs from 'node:fs';
import net from 'node:net';
import tls from 'node:tls';

import { BadRequest } from './errors.js';
import { hasControls, isHost, show, systemWords } from './text.js';

export const ALPN = 'nowcalls/1';
// Of the setting and the environment.
const CERTIFICATE = 'tlsCertificate or NOWCALLS_TLS_CLIENT_CERT';
const KEY = 'tlsKey or NOWCALLS_TLS_CLIENT_KEY';
const CERTIFICATES = /-----BEGIN (?:TRUSTED )?CERTIFICATE-----[^]*?-----END [A-Z ]+-----/g;

const OTHER_VERSIONS = 'it speaks other versions of TLS; 1.2 and 1.3 are spoken here';
const REFUSED = "it refuses the client's certificate";
// Reasons of OpenSSL that people meet, in lower case with a space between words.
const WORDS = new Map([
  ['unsupported protocol', OTHER_VERSIONS],
  ['tlsv1 alert protocol version', OTHER_VERSIONS],
  [
    'tlsv13 alert certificate required',
    'it asks for a client certificate, and none was shown; set tlsCertificate and tlsKey',
  ],
  [
    'sslv3 alert handshake failure',
    'it refuses the handshake: no cipher suite in common, or it asks for a client certificate',
  ],
  ['tlsv1 alert unknown ca', `${REFUSED}: it does not know the CA that signed it`],
  ['sslv3 alert certificate expired', `${REFUSED}: it has expired`],
  ['sslv3 alert bad certificate', REFUSED],
  ['sslv3 alert certificate revoked', REFUSED],
  ['tlsv1 alert access denied', REFUSED],
  ['sslv3 alert certificate unknown', REFUSED],
  ['sslv3 alert unsupported certificate', REFUSED],
  [
    'tlsv1 alert no application protocol',
    `it asks for another application protocol (ALPN) than ${ALPN}`,
  ],
]);
// Alerts about what the client shows. Before TLS 1.3 a server that misses a certificate says
// handshake failure, which may mean anything.
const DENIALS = [
  ...['tlsv13 alert certificate required', 'tlsv1 alert unknown ca', 'tlsv1 alert access denied'],
  ...['sslv3 alert bad certificate', 'sslv3 alert certificate expired'],
  ...['sslv3 alert certificate revoked', 'sslv3 alert certificate unknown'],
  'sslv3 alert unsupported certificate',
];
const NO_TLS = [
  ...['wrong version number', 'http request', 'https proxy request', 'packet length too long'],
  ...['unexpected message', 'bad length', 'record layer failure'],
];
const ENDS = ['ECONNRESET', 'EPIPE', 'ECONNABORTED'];
export class Tls {
  #ca;
  #certificate;
  #key;
  #serverName;
  #own; // The program's own secure context, used as it is.
  #loaded = null;
  #stamps = '';

  /** ca: null for the authorities that Node trusts. */
  constructor({ ca = null, certificate = null, key = null, serverName = null, own = null }) {
    this.#ca = ca;
    this.#certificate = certificate;
    this.#key = key;
    this.#serverName = serverName;
    this.#own = own;
    this.context();
  }

  /** For the next dial: files that have changed are read again. Throws BadRequest. */
  context() {
    if (this.#own !== null) return this.#own;
    const files = [this.#ca, this.#certificate, this.#key];
    const stamps = files.map((path) => (path === null ? '' : stampOf(path))).join();
    if (this.#loaded === null || stamps !== this.#stamps) {
      this.#loaded = this.#load();
      this.#stamps = stamps;
    }
    return this.#loaded;
  }

  /** The options of tls.connect for a host that is dialled. */
  optionsFor(host) {
    const name = this.nameFor(host);
    return {
      secureContext: this.context(),
      servername: net.isIP(name) ? '' : name,
      ALPNProtocols: [ALPN],
      rejectUnauthorized: true,
      checkServerIdentity: (_, certificate) => checkIdentity(name, certificate),
    };
  }

  /** What the certificate must have, for a host that is dialled. */
  nameFor(host) {
    const name = this.#serverName ?? host.split('%')[0]; // fe80::1%eth0.
    return name.endsWith('.') ? name.slice(0, -1) : name;
  }

  #load() {
    // A CA of the file is believed also if another one has signed it, from Node 20.18 on.
    const options = { minVersion: 'TLSv1.2', allowPartialTrustChain: true };
    if (this.#ca !== null) options.ca = authoritiesOf(this.#ca);
    if (this.#certificate !== null) {
      options.cert = readFile(this.#certificate, `${CERTIFICATE}: `);
      options.key = readFile(this.#key, `${KEY}: `);
      checkKey(this.#key, options.key);
    }
    try {
      return tls.createSecureContext(options);
    } catch (error) {
      if (this.#certificate === null) throw new BadRequest(`tls: ${reasonOf(error)}`);
      throw this.#wrongPair(error);
    }
  }

  #wrongPair(error) {
    const [certificate, key] = [this.#certificate, this.#key];
    if (reasonOf(error) === 'key values mismatch') {
      return new BadRequest(`${KEY}: ${key} is not the key of ${certificate}`);
    }
    return new BadRequest(
      `${CERTIFICATE}: ${certificate} and ${key} are no PEM files of a certificate and its key: ` +
        reasonOf(error),
    );
  }
}

/** A common name counts for nothing. */
function checkIdentity(name, certificate) {
  const mismatch = certificate.subjectaltname
    ? tls.checkServerIdentity(name, certificate)
    : new Error();
  if (mismatch === undefined) return undefined;
  const what = net.isIP(name) ? 'IP address' : 'Hostname';
  const error = new Error(`${what} mismatch, certificate is not valid for '${name}'`);
  error.code = 'ERR_TLS_CERT_ALTNAME_INVALID';
  return error;
}

function readFile(path, about = 'tls: ') {
  try {
    return fs.readFileSync(path);
  } catch (error) {
    throw new BadRequest(`${about}cannot read ${path}: ${systemWords(error)}`);
  }
}

/** OpenSSL takes a file without any certificate for one of none. */
function authoritiesOf(path) {
  const found = readFile(path).toString('latin1').match(CERTIFICATES) ?? [];
  let reason = 'no certificate begins in it';
  try {
    for (const certificate of found) new X509Certificate(certificate);
    if (found.length > 0) return found;
  } catch (error) {
    reason = reasonOf(error);
  }
  throw new BadRequest(`tls: ${path} is no PEM file of certificates: ${reason}`);
}

function checkKey(path, key) {
  if (/ENCRYPTED/.test(key.toString('latin1'))) {
    throw new BadRequest(`${KEY}: ${path} has a passphrase; give a key without one`);
  }
}

function stampOf(path) {
  try {
    const { dev, ino, size, mtimeNs, ctimeNs } = fs.statSync(path, { bigint: true });
    return [dev, ino, size, mtimeNs, ctimeNs].join(':');
  } catch (error) {
    throw new BadRequest(`tls: cannot read ${path}: ${systemWords(error)}`);
  }
}

const isPath = (value) => (typeof value === 'string' && value !== '') || value instanceof URL;

/** From settings, and the environment where they say nothing. null: plain. Throws BadRequest. */
export function makeTls(settings) {
  const given = ['tlsCertificate', 'tlsKey', 'tlsServerName'].filter((n) => settings[n] !== null);
  checkSettings(settings);
  if (settings.tls instanceof tls.SecureContext) {
    return withContext(settings.tls, given, settings.tlsServerName);
  }
  if (settings.tls === false) {
    if (given.length > 0) throw new BadRequest(`${given[0]} is set, but tls is false`);
    return null;
  }
  if (settings.tls === null && given.length === 0 && !environmentHasTls()) return null;
  const { env } = process;
  const isPlaceless = settings.tls === null || settings.tls === true;
  const ca = (isPlaceless ? env.NOWCALLS_TLS_CA : settings.tls) || null;
  const certificate = settings.tlsCertificate ?? (env.NOWCALLS_TLS_CLIENT_CERT || null);
  const key = settings.tlsKey ?? (env.NOWCALLS_TLS_CLIENT_KEY || null);
  if ((certificate === null) !== (key === null)) {
    const [one, other] = key === null ? [CERTIFICATE, KEY] : [KEY, CERTIFICATE];
    throw new BadRequest(`${one} is set without ${other}; give both, or none`);
  }
  return new Tls({ ca, certificate, key, serverName: settings.tlsServerName });
}

function checkSettings(settings) {
  if (settings.tlsServerName !== null) checkName(settings.tlsServerName);
  for (const name of ['tlsCertificate', 'tlsKey']) {
    if (settings[name] !== null && !isPath(settings[name])) {
      throw new BadRequest(`${name} must be the path of a file, not ${show(settings[name])}`);
    }
  }
  const isKnown = [null, true, false].includes(settings.tls) || isPath(settings.tls);
  if (!isKnown && !(settings.tls instanceof tls.SecureContext)) {
    const known = 'true, false, the path of a CA file or a secure context';
    throw new BadRequest(`tls must be ${known}, not ${show(settings.tls)}`);
  }
}

function withContext(own, given, serverName) {
  const surplus = given.find((name) => name !== 'tlsServerName');
  if (surplus !== undefined) {
    throw new BadRequest(`tls is a context, so it must have what ${surplus} says itself`);
  }
  return new Tls({ own, serverName });
}

function environmentHasTls() {
  const says = process.env.NOWCALLS_TLS ?? '';
  if (!['', 'on', 'off'].includes(says)) {
    throw new BadRequest(`NOWCALLS_TLS: '${says}' is neither on nor off`);
  }
  const files = ['NOWCALLS_TLS_CA', 'NOWCALLS_TLS_CLIENT_CERT', 'NOWCALLS_TLS_CLIENT_KEY'];
  return says === 'on' || (says === '' && files.some((name) => process.env[name]));
}

function checkName(name) {
  const right = typeof name === 'string' && !hasControls(name) && !name.startsWith('.');
  if (!right || !(net.isIP(name) || isHost(name))) {
    throw new BadRequest(`tlsServerName must be a host's name or address, not ${show(name, 300)}`);
  }
}

/** Whether the server does not let the client's certificate in, or asks for one. */
export function denies(error) {
  return DENIALS.includes(reasonOf(error));
}

/**
 * What ended a connection. shaking: or its dial, which speaks TLS. believed: its certificate is.
 */
export function why(error, { shaking = false, believed = true } = {}) {
  if (!believed) {
    return `its certificate is not believed: ${error.message.replace(/\.$/, '')}`;
  }
  if (shaking && ENDS.includes(error.code)) {
    return 'the server closed the connection in the TLS handshake; does it speak TLS?';
  }
  const reason = reasonOf(error);
  if (shaking && NO_TLS.includes(reason)) return 'it does not speak TLS';
  if (WORDS.has(reason)) return WORDS.get(reason);
  if (error.library !== undefined || String(error.code).startsWith('ERR_SSL')) {
    return `TLS failed: ${reason}`;
  }
  return systemWords(error);
}

/** As OpenSSL has it: lower case, with a space between words. */
function reasonOf(error) {
  const reason = error?.reason ?? '';
  const code = String(error?.code ?? '').replace(/^ERR_(SSL|OSSL(_[A-Z0-9]+)??)_/, '');
  return (reason || code || String(error?.message)).toLowerCase().replaceAll('_', ' ');
}
