// Certificates of a test, made by openssl(1).

import { execFileSync } from 'node:child_process';
import fs from 'node:fs';
import path from 'node:path';

import { temporary } from './support.js';

/** A CA in a directory of its own. Files are PEM. */
export class Authority {
  #directory = temporary('ca');
  #issued = 0;

  constructor() {
    this.file = this.path('ca.pem');
    const key = this.newKey('ca');
    openssl('req', '-x509', '-key', key, '-out', this.file, '-days', '9', '-subj', '/CN=Test CA');
  }

  path(name) {
    return path.join(this.#directory, name);
  }

  /** { certificate, key }. names: subjectAltName, like "DNS:a.test,IP:127.0.0.1". */
  issue(names, days = 9) {
    const stem = `leaf-${(this.#issued += 1)}`;
    const [key, request] = [this.newKey(stem), this.path(`${stem}.csr`)];
    const [certificate, extensions] = [this.path(`${stem}.pem`), this.path(`${stem}.ext`)];
    fs.writeFileSync(extensions, names ? `subjectAltName=${names}\n` : '');
    // A common name counts for nothing.
    openssl('req', '-new', '-key', key, '-out', request, '-subj', '/CN=common.test');
    openssl(
      ...['x509', '-req', '-in', request, '-out', certificate, '-days', String(days)],
      ...['-CA', this.file, '-CAkey', this.path('ca.key'), '-CAcreateserial'],
      ...['-extfile', extensions],
    );
    return { certificate, key };
  }

  newKey(stem) {
    const key = this.path(`${stem}.key`);
    openssl('genpkey', '-algorithm', 'EC', '-pkeyopt', 'ec_paramgen_curve:P-256', '-out', key);
    return key;
  }
}

export function openssl(...given) {
  return execFileSync('openssl', given, { stdio: ['ignore', 'pipe', 'ignore'] }).toString();
}
