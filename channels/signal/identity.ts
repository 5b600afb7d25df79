import { z } from 'zod';
import { channelUnavailable } from '#channel-kit/network-fault.ts';
import { parleyCommand } from '#channel-kit/own-commands.ts';
import { readStateFile, replaceFile } from '#channel-kit/state-file.ts';
import { ParleyError } from '#contracts/errors.ts';
import type { ListedContact, SignalApi } from './api.ts';
import { readAci } from './ids.ts';

/** The account's own ACI. `doubt`: why the server's list of identities didn't give it; absent when it did. */
export type OwnAci = { readonly aci: string; readonly doubt?: string };

export type AciSearch = {
  readonly api: Pick<SignalApi, 'identities' | 'contacts'>;
  readonly number: string;
  /** From the configuration; needs no server. */
  readonly configured: string | undefined;
  /** The file that keeps an ACI returned by the server, for a start at which it returns none. */
  readonly path: string;
};

/** Returns the account to use: the configured one, or the only one. Throws `channel_unauthorised`. */
export async function findNumber(
  api: Pick<SignalApi, 'accounts'>,
  { number }: { readonly number?: string | undefined },
  signal: AbortSignal,
): Promise<string> {
  const accounts = await api.accounts(signal);
  const [only] = accounts.length === 1 ? accounts : [];
  if (number === undefined && only !== undefined) return only;
  if (number !== undefined && accounts.includes(number)) return number;
  const what =
    number === undefined
      ? `signal-cli-rest-api has ${accounts.length} accounts; set SIGNAL_NUMBER to the one to use`
      : 'SIGNAL_NUMBER isn’t an account of this signal-cli-rest-api';
  throw new ParleyError(
    'channel_unauthorised',
    `${what}, or link one with \`${parleyCommand} channels login signal\``,
  );
}

/**
 * Finds the account's own ACI: configured, listed among the identities, listed among the contacts, or kept from an
 * earlier start. Throws `channel_unavailable` if none of these has it.
 */
export async function findAci(search: AciSearch, signal: AbortSignal): Promise<OwnAci> {
  try {
    return { aci: await confirmAci(search, signal) };
  } catch (error) {
    if (signal.aborted) throw error;
    const aci = (await contactAci(search, signal)) ?? (await keptAci(search));
    if (aci === undefined) throw error;
    const reason = error instanceof Error ? error.message : String(error);
    return { aci, doubt: `own identity not confirmed: ${reason}` };
  }
}

/**
 * Asks for the account's own ACI and keeps it. No call returns it directly, but signal-cli lists its own key among
 * those it trusts, under its own number. Throws `channel_unavailable`.
 */
export async function confirmAci(search: AciSearch, signal: AbortSignal): Promise<string> {
  const { api, number, configured, path } = search;
  const given = readAci(configured);
  if (given !== undefined) return given;
  const aci = ownAci(await api.identities(number, signal), number);
  if (aci !== undefined) {
    // A full disk only costs a later start its fallback.
    await replaceFile(path, JSON.stringify({ number, aci })).catch(() => undefined);
    return aci;
  }
  throw channelUnavailable(
    'signal-cli-rest-api doesn’t return its account’s ACI; set channels.signal.aci to it',
  );
}

/** With `all_recipients`, the contacts include the account itself. */
async function contactAci({ api, number }: AciSearch, signal: AbortSignal): Promise<string | undefined> {
  try {
    return ownAci(await api.contacts(number, signal), number);
  } catch (error) {
    if (signal.aborted) throw error;
    return undefined;
  }
}

function ownAci(listed: readonly Pick<ListedContact, 'number' | 'uuid'>[], own: string): string | undefined {
  for (const { number, uuid } of listed) {
    const found = number === own ? readAci(uuid) : undefined;
    if (found !== undefined) return found;
  }
  return undefined;
}

const keptSchema = z.object({ number: z.string(), aci: z.string() });

async function keptAci({ path, number }: AciSearch): Promise<string | undefined> {
  const kept = await readStateFile(path, keptSchema);
  return kept?.number === number ? readAci(kept.aci) : undefined;
}
