import { ParleyError } from '#contracts/errors.ts';
import type { SignalApi } from './api.ts';
import { readAci } from './ids.ts';

type Wanted = { readonly number?: string | undefined; readonly aci?: string | undefined };

/** The account to use: the configured one, or the only one there is. Throws `channel_unauthorised`. */
export async function findNumber(
  api: Pick<SignalApi, 'accounts'>,
  { number }: Wanted,
  signal: AbortSignal,
): Promise<string> {
  const accounts = await api.accounts(signal);
  const [only] = accounts.length === 1 ? accounts : [];
  if (number === undefined && only !== undefined) return only;
  if (number !== undefined && accounts.includes(number)) return number;
  const what =
    number === undefined
      ? `signal-cli-rest-api has ${accounts.length} accounts; set SIGNAL_NUMBER to the one to use`
      : 'SIGNAL_NUMBER is no account of this signal-cli-rest-api';
  throw new ParleyError('channel_unauthorised', `${what}, or link one with \`parley channels login signal\``);
}

/**
 * The account's own ACI. No call tells it outright; but signal-cli keeps its own key among those it
 * trusts, under its own number. Throws `channel_unavailable`.
 */
export async function findAci(
  api: Pick<SignalApi, 'identities'>,
  { aci, number }: Wanted & { readonly number: string },
  signal: AbortSignal,
): Promise<string> {
  const configured = readAci(aci);
  if (configured !== undefined) return configured;
  for (const identity of await api.identities(number, signal)) {
    const found = identity.number === number ? readAci(identity.uuid) : undefined;
    if (found !== undefined) return found;
  }
  throw new ParleyError(
    'channel_unavailable',
    'signal-cli-rest-api does not tell the ACI of its account; set channels.signal.aci to it',
    { retry: { kind: 'later' } },
  );
}
