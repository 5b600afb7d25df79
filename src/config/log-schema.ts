/** The settings of what Parley writes down about its own work, both bounded. */

import { isIP } from 'node:net';
import { z } from 'zod';

/** The log in the data folder. */
export const logFile = z
  .strictObject({
    enabled: z
      .boolean()
      .exactOptional()
      .describe(
        'Also write the log to logs/parley.log in the data folder. Default: unless systemd keeps it.',
      ),
    maxMb: z
      .number()
      .min(1)
      .max(10_000)
      .default(20)
      .describe('Maximum size in megabytes, including the previous file.'),
  })
  .prefault({});

/** Whether the full requests and answers of model calls are logged. */
export const payloadLog = z
  .strictObject({
    enabled: z
      .boolean()
      .default(false)
      .describe(
        'Write each model request and answer to payloads.jsonl in the data folder, without secrets. The file contains what people wrote.',
      ),
    maxMb: z
      .number()
      .min(1)
      .max(100_000)
      .default(64)
      .describe('Maximum size in megabytes, including the previous file.'),
  })
  .prefault({});

/** Says whether the text is an IP address or a CIDR range: `10.0.0.2`, `10.0.0.0/8`, `fd00::/8`. */
export function isAddressRange(text: string): boolean {
  const [address = '', bits, ...rest] = text.split('/');
  const version = isIP(address);
  if (version === 0 || rest.length > 0 || address.includes('%')) return false;
  return bits === undefined || (/^\d{1,3}$/.test(bits) && Number(bits) <= (version === 6 ? 128 : 32));
}

/** Says whether the text is a valid `Host` header: `parley.home`, `parley.home:8443`, `[fd00::1]`. */
export function isHost(text: string): boolean {
  return /^(?:\[[\da-f:.]+\]|[a-z\d](?:[a-z\d._-]*[a-z\d])?)(?::[1-9]\d{0,4})?$/i.test(text);
}
