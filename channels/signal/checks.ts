import { parleyCommand } from '#channel-kit/own-commands.ts';
import { localTime } from '#channel-kit/time-text.ts';
import type { ChannelCheck } from '#contracts/channel-abilities.ts';
import { hasCode } from '#contracts/errors.ts';
import type { ListedContact, Mode, SignalApi } from './api.ts';
import type { OwnAci } from './identity.ts';
import { readAci } from './ids.ts';
import type { Seen } from './last-seen.ts';

export type CheckDeps = {
  readonly api: Pick<SignalApi, 'about' | 'accounts' | 'contacts'>;
  readonly number: string | undefined;
  readonly hasSecret: boolean;
  /** Returns when this process or an earlier one last received, had its webhook called, or lost a message. */
  seen(): Promise<Seen>;
  /** ms since the epoch. */
  now(): number;
  /** Returns the account's ACI; throws if it can't be determined. */
  ownAci(number: string): Promise<OwnAci>;
};

/** Runs doctor's checks of Signal. Checks that an earlier failure makes meaningless are left out. */
export async function checkSignal(deps: CheckDeps, signal: AbortSignal): Promise<readonly ChannelCheck[]> {
  const reached = await reach(deps, signal);
  if (reached.mode === undefined) return [reached.check];
  const account = await findAccount(deps, signal);
  const receiving = await receivingCheck(deps, reached.mode);
  const checks = [reached.check, receiving, ...(await lossChecks(deps)), account.check];
  if (account.number === undefined) return checks;
  return [...checks, ...(await profileChecks(deps, account.number, signal))];
}

async function reach(
  { api }: CheckDeps,
  signal: AbortSignal,
): Promise<{ readonly check: ChannelCheck; readonly mode?: Mode }> {
  try {
    const { mode, version } = await api.about(signal);
    const detail = `signal-cli-rest-api ${version} answers`;
    return { check: { name: 'server', result: 'ok', detail }, mode };
  } catch (error) {
    const fix = 'start signal-cli-rest-api, and set SIGNAL_API_URL to its address';
    return { check: { name: 'server', result: 'failed', detail: messageOf(error), fix } };
  }
}

/** Says how messages are received, and what that mode loses. */
async function receivingCheck(deps: CheckDeps, mode: Mode): Promise<ChannelCheck> {
  if (mode === 'polling') {
    const detail =
      'messages are polled, and wait on Signal’s server while Parley isn’t running; sends wait for polls';
    return { name: 'receiving', result: 'ok', detail };
  }
  const name = 'webhook';
  const losing = 'while Parley isn’t running, signal-cli-rest-api loses messages, which is reported as a gap';
  if (!deps.hasSecret) {
    return {
      name,
      result: 'warning',
      detail: `there is only the WebSocket, which loses messages that arrive in bursts; ${losing}`,
      fix: 'set SIGNAL_WEBHOOK_SECRET, and RECEIVE_WEBHOOK_URL of signal-cli-rest-api to http://<parley>/channels/signal/webhook/<the secret>',
    };
  }
  const { webhookAt } = await deps.seen();
  if (webhookAt === undefined) {
    return {
      name,
      result: 'warning',
      detail: 'it is set up, but has never been called',
      fix: 'set RECEIVE_WEBHOOK_URL of signal-cli-rest-api to http://<parley>/channels/signal/webhook/<SIGNAL_WEBHOOK_SECRET>, and send the bot a message',
    };
  }
  const detail = `last called at ${localTime(webhookAt)}; ${losing}`;
  return { name, result: 'ok', detail };
}

/** How long a loss is reported, ms. */
const recentMs = 7 * 86_400_000;

async function lossChecks({ seen, now }: CheckDeps): Promise<readonly ChannelCheck[]> {
  const { lostAt } = await seen();
  if (lostAt === undefined || lostAt < now() - recentMs) return [];
  return [
    {
      name: 'losses',
      result: 'warning',
      detail: `a message that arrived at ${localTime(lostAt)} could not be kept; see the log for the reason`,
      fix: 'ask people to resend what they sent at that time',
    },
  ];
}

async function findAccount(
  { api, number }: CheckDeps,
  signal: AbortSignal,
): Promise<{ readonly check: ChannelCheck; readonly number?: string }> {
  const name = 'account';
  try {
    const accounts = await api.accounts(signal);
    const [only] = accounts.length === 1 ? accounts : [];
    const found = number === undefined ? only : accounts.find((one) => one === number);
    if (found !== undefined)
      return { check: { name, result: 'ok', detail: `${found} is registered or linked` }, number: found };
    const detail =
      accounts.length === 0
        ? 'the server has no account'
        : number === undefined
          ? `the server has ${accounts.length} accounts, and SIGNAL_NUMBER isn’t set`
          : `the server doesn’t have the account ${number}`;
    const fix = `link one with \`${parleyCommand} channels login signal\`, or set SIGNAL_NUMBER to one it has`;
    return { check: { name, result: 'failed', detail, fix } };
  } catch (error) {
    const fix = 'check the log of signal-cli-rest-api: signal-cli itself doesn’t answer';
    return { check: { name, result: 'failed', detail: messageOf(error), fix } };
  }
}

/** Checks the profile: Signal doesn't let an account without a profile name write in groups. */
async function profileChecks(
  deps: CheckDeps,
  number: string,
  signal: AbortSignal,
): Promise<readonly ChannelCheck[]> {
  try {
    const { aci, doubt } = await deps.ownAci(number);
    const profile = await profileCheck(deps.api, { aci, number }, signal);
    if (doubt === undefined) return [profile];
    const fix = 'if it doesn’t go away, set channels.signal.aci to the account’s ACI';
    return [{ name: 'identity', result: 'warning', detail: doubt, fix }, profile];
  } catch (error) {
    return [{ name: 'profile', result: 'warning', detail: messageOf(error) }];
  }
}

async function profileCheck(
  api: CheckDeps['api'],
  { aci, number }: { readonly aci: string; readonly number: string },
  signal: AbortSignal,
): Promise<ChannelCheck> {
  const name = 'profile';
  try {
    const own = (await api.contacts(number, signal)).find(({ uuid }) => readAci(uuid) === aci);
    if (own === undefined)
      return { name, result: 'warning', detail: 'the server doesn’t return the profile of its own account' };
    const shown = profileName(own);
    if (shown !== '') return { name, result: 'ok', detail: `people see it as “${shown}”` };
    return {
      name,
      result: 'failed',
      detail: 'the account has no profile name, and can’t write in groups without one',
      fix: `PUT /v1/profiles/${number} of signal-cli-rest-api with {"name": "Parley"}`,
    };
  } catch (error) {
    return { name, result: 'warning', detail: messageOf(error) };
  }
}

function profileName({ profile, profile_name: name }: ListedContact): string {
  return (name || profile?.given_name || '').trim();
}

function messageOf(error: unknown): string {
  if (hasCode(error, 'channel_unavailable') || hasCode(error, 'channel_unauthorised')) return String(error);
  return error instanceof Error ? error.message : String(error);
}
