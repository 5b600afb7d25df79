import type { LoginStep } from '#contracts/channel-abilities.ts';
import type { Clock } from '#contracts/clock.ts';
import { ParleyError } from '#contracts/errors.ts';
import type { SignalApi } from './api.ts';

/** A link is valid for a short, undocumented time; after this time, ms, another one is shown. */
const linkLivesMs = 60_000;
const lookEveryMs = 1000;

export type LoginDeps = {
  readonly api: Pick<SignalApi, 'accounts' | 'deviceLink'>;
  readonly clock: Clock;
  readonly number: string | undefined;
  readonly deviceName: string;
};

/** Links the server to an account as another of its devices. Once the code is scanned, the server does the rest. */
export async function* linkDevice(deps: LoginDeps, signal: AbortSignal): AsyncIterable<LoginStep> {
  const { api, clock, number, deviceName } = deps;
  const before = await api.accounts(signal);
  if (number !== undefined && before.includes(number)) {
    yield { kind: 'done', account: number };
    return;
  }
  for (;;) {
    yield { kind: 'scan', uri: await api.deviceLink(deviceName, signal) };
    const until = clock.now() + linkLivesMs;
    while (clock.now() < until) {
      await clock.wait(lookEveryMs, signal);
      if (signal.aborted) throw new ParleyError('channel_unavailable', 'nobody scanned the code in time');
      const account = await newAccount(deps, before, signal);
      if (account === undefined) continue;
      yield { kind: 'done', account };
      return;
    }
  }
}

async function newAccount(
  { api, number }: LoginDeps,
  before: readonly string[],
  signal: AbortSignal,
): Promise<string | undefined> {
  try {
    const now = await api.accounts(signal);
    return now.find((one) => (number === undefined ? !before.includes(one) : one === number));
  } catch {
    return undefined; // The server is asked again; if it is gone, requesting the next link throws.
  }
}
